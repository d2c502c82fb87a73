"""What records of one kind say of records of another: by correlation id, by context, by event.

CUPTI's buffers are in no order across threads, so everything is looked up in all records of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuda_cupti.decode import Records
from cuda_cupti.external_ids import OP_KIND, USER_KIND
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.rows import Rows, joined

__all__ = ["ExternalKinds", "Joins", "Lookup", "for_later", "joins_of"]

Longs = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]

_K = ActivityKind
_WITH_DEVICE = (
    _K.CONCURRENT_KERNEL,
    _K.KERNEL,
    _K.MEMCPY,
    _K.MEMCPY2,
    _K.MEMSET,
    _K.GRAPH_TRACE,
    _K.CUDA_EVENT,
    _K.CONTEXT,
)
_SPARSE, _SMALL = 4, 1 << 12
"""A table has at most so many times more places than there are numbers, and this many."""
_ABSENT = -1
_NO_DEVICE = 1 << 31
"""From here on a device's number does not fit a record of devprof's: it is none."""
_CAUSED = (*_WITH_DEVICE[:6], _K.SYNCHRONIZATION, _K.MEMORY2)


@dataclass(frozen=True, slots=True)
class ExternalKinds:
    """Which of CUPTI's kinds of external correlation id carry what (``CUpti_ExternalCorrelationKind``).

    Attributes:
        op: kind of devprof's op ids.
        user: kind of the ids of user ranges.
        ids_of: makes devprof's ids of what was pushed, (n,) uint64 to (n,) uint64, 0 for none; None: they are what was pushed.
    """

    op: int = OP_KIND
    user: int = USER_KIND
    ids_of: Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.uint64]] | None = None


class Lookup:
    """Values by number. Where a number occurs twice, its first value counts.

    Correlation ids of a session are nearly without gaps, so a table does; where numbers lie far apart, they are sorted.
    """

    def __init__(self, keys: Numbers, values: Numbers) -> None:
        """Take (n,) keys and (n,) values, none negative."""
        keys = keys.astype(np.int64)
        numbers: Longs = values.astype(np.int64)
        self._sorted: Longs | None = None
        self._lowest = int(keys.min()) if len(keys) else 0
        span = int(keys.max()) - self._lowest + 1 if len(keys) else 0
        if span > _SPARSE * len(keys) + _SMALL:
            self._sorted, first = np.unique(keys, return_index=True)
            self._values: Longs = numbers[first]
            return
        self._values = np.full(span, _ABSENT, dtype=np.int64)
        self._values[keys[::-1] - self._lowest] = numbers[::-1]

    @property
    def values(self) -> set[int]:
        """The distinct values that there are."""
        return set(np.unique(self._values).tolist()) - {_ABSENT}

    def of(self, keys: Numbers, default: int = 0) -> Longs:
        """Return the value of each number, (n,), `default` for one that there is not."""
        values = self._found(keys)
        values[values == _ABSENT] = default
        return values

    def has(self, keys: Numbers) -> npt.NDArray[np.bool_]:
        """Say which numbers there are, (n,)."""
        found: npt.NDArray[np.bool_] = self._found(keys) != _ABSENT
        return found

    def _found(self, keys: Numbers) -> Longs:
        if not len(self._values):
            return np.full(len(keys), _ABSENT, dtype=np.int64)
        wanted: Longs = keys.astype(np.int64, copy=False)
        at: Longs = (
            wanted - self._lowest if self._sorted is None else np.searchsorted(self._sorted, wanted).astype(np.int64)
        )
        inside = (at >= 0) & (at < len(self._values))
        at *= inside
        found: Longs = self._values[at]
        found[~inside if self._sorted is None else ~inside | (self._sorted[at] != wanted)] = _ABSENT
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Joins:
    """Lookups over a session's records.

    Attributes:
        op: op id by correlation id.
        user: user id by correlation id.
        thread: native id of the calling thread by correlation id.
        device: device by context.
        runtime: correlation ids of calls of the runtime.
        caused: correlation ids of what happened on a device, or for it: work, waits, allocations.
        recordings: the recordings of events; None where there are none.
    """

    op: Lookup
    user: Lookup
    thread: Lookup
    device: Lookup
    runtime: Lookup
    caused: Lookup
    recordings: Rows | None

    def device_of(self, contexts: Numbers) -> Longs:
        """Return the device of each context, (n,); the only one that there is, else 0, for a context that nothing tells."""
        known = self.device.values
        return self.device.of(contexts, known.pop() if len(known) == 1 else 0)


def joins_of(records: Sequence[Records], external: ExternalKinds, contexts: Mapping[int, int]) -> Joins:
    """Look at all records of a session once.

    Args:
        records: all of them.
        external: the kinds that ids were pushed under.
        contexts: devices by context, where records do not tell.
    """
    calls = [of.of[kind] for of in records for kind in (_K.RUNTIME, _K.DRIVER) if kind in of.of]
    placed = [of.of[kind] for of in records for kind in _WITH_DEVICE if kind in of.of]
    caused = [of.of[kind] for of in records for kind in _CAUSED if kind in of.of]
    pushed = [of.of[_K.EXTERNAL_CORRELATION] for of in records if _K.EXTERNAL_CORRELATION in of.of]
    recordings = [of.of[_K.CUDA_EVENT] for of in records if _K.CUDA_EVENT in of.of]
    runtime = _column([of.of[_K.RUNTIME] for of in records if _K.RUNTIME in of.of], "correlationId")
    causes = _column(caused, "correlationId")
    return Joins(
        op=_external(pushed, external.op, external),
        user=_external(pushed, external.user, external),
        thread=_numbered(_column(calls, "correlationId"), _column(calls, "threadId")),
        device=_devices(placed, contexts),
        runtime=_numbered(runtime, runtime),
        caused=_numbered(causes, causes),
        recordings=joined(recordings) if recordings else None,
    )


def for_later(earlier: Records, records: Sequence[Records]) -> Records:
    """Return what records of a later piece of the session may belong to: this piece's calls, ids and events, and all contexts.

    Args:
        earlier: what this returned for the piece before.
        records: this piece.
    """
    kept: dict[int, Rows] = {}
    for kind in (_K.EXTERNAL_CORRELATION, _K.RUNTIME, _K.DRIVER, _K.CUDA_EVENT, _K.CONTEXT):
        parts = [one.of[kind] for one in ((earlier, *records) if kind is _K.CONTEXT else records) if kind in one.of]
        if parts:
            kept[kind] = joined(parts)
    return Records(kept)


def _devices(placed: Sequence[Rows], known: Mapping[int, int]) -> Lookup:
    """Return the lookup of devices by context, without numbers that are no device's; what records say goes first."""
    contexts = np.concatenate([_column(placed, "contextId"), np.array(list(known), np.int64)])
    devices = np.concatenate([_column(placed, "deviceId"), np.array(list(known.values()), np.int64)])
    kept = devices < _NO_DEVICE
    return Lookup(contexts[kept], devices[kept])


def _external(pushed: Sequence[Rows], kind: int, external: ExternalKinds) -> Lookup:
    parts = [rows.take(rows["externalKind"] == kind) for rows in pushed]
    given: npt.NDArray[np.uint64] = np.concatenate([rows["externalId"] for rows in parts] or [np.empty(0, np.uint64)])
    ids = given if external.ids_of is None else external.ids_of(given)
    kept = (ids > 0) & (ids < np.uint64(1 << 63))  # what no column of devprof's could hold was not pushed by devprof
    return _numbered(_column(parts, "correlationId")[kept], ids[kept])


def _numbered(keys: Numbers, values: Numbers) -> Lookup:
    """Return the lookup without correlation id 0, which says that there is none."""
    kept = keys != 0
    return Lookup(keys[kept], values[kept])


def _column(parts: Sequence[Rows], name: str) -> Longs:
    arrays = [part[name].astype(np.int64) for part in parts]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
