"""Handing a capture's records to devprof, all at the end or as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from cuda_cupti.collector import MOST_BYTES
from cuda_cupti.decode import Records
from cuda_cupti.devices import DeviceFacts
from cuda_cupti.external_ids import OP_KIND, USER_KIND, ExternalIds
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.memory import MemoryTotals
from cuda_cupti.output import ExternalKinds, for_later, to_batches
from devprof.contract import HOST_CLOCK, ActivityLogger
from devprof.model import ActivityType, DeviceInfo, ResourceInfo

__all__ = ["Delivery"]

_IDS = ActivityKind.EXTERNAL_CORRELATION
_MOST_NOTES = 3


class Delivery:
    """What a session hands over, in one piece or several. Used by one thread at a time.

    Attributes:
        devices, resources, properties: what the records stand on, and what is known of it, so far.
        filtered: how many API calls were left out as noise, so far.
        notes: why buffers could not be read to their ends, the first few.
    """

    def __init__(
        self,
        types: Set[ActivityType],
        facts: Mapping[int, DeviceFacts],
        clock: str = HOST_CLOCK,
        *,
        memory: bool = False,
    ) -> None:
        """Make a delivery that has handed over nothing.

        Args:
            types: what to hand over.
            facts: what is known of the devices, by index.
            clock: what the records' times are on.
            memory: hand over reports of memory.
        """
        self.devices: dict[int, DeviceInfo] = {}
        self.resources: dict[tuple[int, int], ResourceInfo] = {}
        self.properties: Sequence[Mapping[str, object]] = ()
        self.filtered = 0
        self.notes: list[str] = []
        self._types, self._facts, self._clock = types, facts, clock
        self._earlier = Records()
        self._memory = MemoryTotals() if memory else None

    def hand_over(
        self,
        logger: ActivityLogger,
        decoded: Sequence[Records],
        ids: ExternalIds | None,
        contexts: Mapping[int, int] | None = None,
    ) -> None:
        """Hand over the records of decoded buffers.

        A kernel may come one piece after its launch and the ids of it, so those are looked at once more; one that comes later
        still gets its op from its launch, in devprof.

        Args:
            logger: where to.
            decoded: the buffers of this piece.
            ids: the ids of the session.
            contexts: devices by context, where records do not tell.
        """
        records = [_with_own_ids(one, ids) for one in decoded]
        kinds = ExternalKinds(op=OP_KIND, user=USER_KIND)
        output = to_batches(records, self._facts, self._types, kinds, self._earlier, self._memory, contexts)
        for batch in output.batches:
            on_clock = batch.clock == self._clock
            logger.handle_activities(batch if on_clock else batch.with_times(batch.start, batch.end, clock=self._clock))
        for reason, count in output.lost.items():
            logger.handle_dropped(count, reason)
        if any(one.lost_bytes for one in records):
            logger.handle_dropped(None, "the end of an activity buffer that cannot be read")
            stops = [f"an activity buffer could not be read on: {stop}" for one in records for stop in one.stops]
            self.notes += stops[: _MOST_NOTES - len(self.notes)]
        self.devices |= {one.id: one for one in output.devices}
        self.resources |= {(one.device_id, one.id): one for one in output.resources}
        self.properties, self.filtered = output.properties, self.filtered + output.filtered
        self._earlier = for_later(self._earlier, records)

    def tell_losses(self, logger: ActivityLogger, dropped: int | None, unkept: int) -> None:
        """Say what never became a record here.

        Args:
            logger: where to.
            dropped: how many records CUPTI had no room for; None: it cannot say.
            unkept: how many were over the limit of a session.
        """
        if dropped is None:
            logger.handle_dropped(None, "CUPTI does not say how many records it dropped")
        elif dropped:
            logger.handle_dropped(dropped, "CUPTI had no buffer for them")
        if unkept:
            logger.handle_dropped(unkept, f"more than {MOST_BYTES >> 30} GiB of records")


def _with_own_ids(records: Records, ids: ExternalIds | None) -> Records:
    """Return the records with the ids that the session pushed, in place of the numbers that CUPTI was given for them."""
    rows = records.of.get(_IDS)
    if rows is None or ids is None:
        return records
    own = rows.replaced("externalId", ids.incoming(rows["externalId"]))
    mine = np.isin(own["externalKind"], (OP_KIND, USER_KIND)) & (own["externalId"] != 0)
    of = {**records.of, _IDS: own.take(mine)}
    return Records(of, records.text, records.texts, records.n_bytes, records.lost_bytes, records.stops)
