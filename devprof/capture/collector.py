"""`Collector`: the `ActivityLogger` of one plugin in one session."""

from __future__ import annotations

import operator
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from devprof.capture.kept import Kept
from devprof.capture.ledger import PluginLedger
from devprof.capture.settings import record_limit
from devprof.contract import HOST_CLOCK, ActivityLogger
from devprof.errors import PluginContractError
from devprof.model import (
    ActivityBatch,
    BatchBuilder,
    DeviceInfo,
    GenericTraceActivity,
    MixedKindsError,
    RecordError,
    ResourceInfo,
)
from devprof.model.reasons import OVER_LIMIT
from devprof.store.limits import Limits

__all__ = ["Collector"]

_FLUSH_ROWS = 8192
_MOST_BUILDERS = 8
"""Batches filled side by side, where records give one metadata key values of different types."""
_MOST_REASONS = 100
_LONGEST_REASON = 200


class Collector(ActivityLogger):
    """Takes a plugin's records and counts what it cannot take.

    Used on one devprof thread during `process_trace` or one `flush_trace`; `close()` makes every later call fail, so that
    a plugin that was given up on cannot write into a session that has gone on. It may be closed on another thread in the
    middle of a call: a plugin's object is never read while the lock is held, because reading it may hang.
    """

    def __init__(self, ledger: PluginLedger, *, clock: str, limit: int | None = None, kept: Kept | None = None) -> None:
        """Make an open collector.

        Args:
            ledger: account of the plugin.
            clock: clock of records that come one by one; batches may also be on the host's.
            limit: most records to take; None takes `record_limit()`.
            kept: where records go; None: a place of this collector's own, with that limit.
        """
        self._ledger = ledger
        self._clock = clock
        self._kept = kept or Kept(ledger, None, Limits(record_limit() if limit is None else limit))
        self._builders: list[BatchBuilder] = []
        self._n_pending = 0
        self._open = True
        self._lock = threading.Lock()
        self.device_infos: list[DeviceInfo] = []
        self.resource_infos: list[ResourceInfo] = []

    @property
    def batches(self) -> list[ActivityBatch]:
        """What is kept of the records that were taken."""
        return self._kept.batches

    def handle_activity(self, activity: GenericTraceActivity) -> None:
        """Take one record as it is now; a record that no column can hold is rejected and counted."""
        self._expect(activity, GenericTraceActivity, "handle_activity")
        with self._taking("handle_activity"):
            if self._kept.is_full(self._n_pending):
                _count(self._ledger.dropped, OVER_LIMIT)
                return
        problem = self._read(activity)
        with self._taking("handle_activity"):
            if problem:
                _count(self._ledger.rejected, f"malformed record: {problem}")
                return
            self._n_pending += 1
            if self._n_pending >= _FLUSH_ROWS:
                self._flush()

    def handle_activities(self, batch: ActivityBatch) -> None:
        """Take a batch."""
        self._expect(batch, ActivityBatch, "handle_activities")
        if batch.clock not in (self._clock, HOST_CLOCK):
            raise self._error(
                "handle_activities",
                f"the batch's clock is {batch.clock!r}, expected {self._clock!r}: a batch is on the clock that the session's "
                "clock_domain() names, or on 'unix_ns'",
            )
        with self._taking("handle_activities"):
            self._flush()
            self._kept.add(batch)

    def handle_device_info(self, info: DeviceInfo) -> None:
        """Name a device's row."""
        self._expect(info, DeviceInfo, "handle_device_info")
        with self._taking("handle_device_info"):
            self.device_infos.append(info)

    def handle_resource_info(self, info: ResourceInfo) -> None:
        """Name a resource's row."""
        self._expect(info, ResourceInfo, "handle_resource_info")
        with self._taking("handle_resource_info"):
            self.resource_infos.append(info)

    def handle_dropped(self, count: int | None, reason: str) -> None:
        """Count records that were lost before they reached devprof."""
        self._expect(reason, str, "handle_dropped")
        number = None if count is None else self._number(count)
        with self._taking("handle_dropped"):
            if number is None:
                self._lost_unknown(reason[:_LONGEST_REASON])
            elif number:
                _count(self._ledger.dropped, reason[:_LONGEST_REASON], number)

    def close(self) -> None:
        """Flush what is pending and refuse everything that comes later."""
        with self._lock:
            if self._open:
                self._flush()
            self._open = False

    @contextmanager
    def _taking(self, method: str) -> Iterator[None]:
        with self._lock:
            if not self._open:
                raise self._error(
                    method, "called after the hook that got it ended; a logger is valid only during that call"
                )
            yield

    def _expect(self, value: object, expected: type, method: str) -> None:
        if not isinstance(value, expected):
            raise self._error(method, f"got a {type(value).__name__}, expected a {expected.__name__}")

    def _error(self, method: str, message: str) -> PluginContractError:
        return PluginContractError(self._ledger.plugin, f"logger.{method}", message)

    def _number(self, count: object) -> int:
        try:
            number = operator.index(count)  # type: ignore[arg-type]  # the call is the check
        except TypeError:
            number = -1
        if number < 0:
            raise self._error("handle_dropped", f"count is {count!r}; expected 0 or more, or None for unknown")
        return number

    def _lost_unknown(self, reason: str) -> None:
        known = self._ledger.lost_unknown
        if reason not in known and len(known) < _MOST_REASONS:
            known.append(reason)

    def _read(self, activity: GenericTraceActivity) -> str:
        """Put a record where it is kept until the next flush; say why it cannot be kept, or nothing."""
        try:
            self._builder_for(activity)
        except RecordError as error:
            return error.reason
        except Exception as error:  # noqa: BLE001 - a plugin's object may do anything when it is read
            return f"reading it raised {type(error).__name__}"
        return ""

    def _builder_for(self, activity: GenericTraceActivity) -> None:
        for builder in self._builders:
            try:
                return builder.append(activity)
            except MixedKindsError:
                continue  # the next one may hold the other type
        builder = BatchBuilder(clock=self._clock)
        builder.append(activity)
        if len(self._builders) >= _MOST_BUILDERS:
            with self._taking("handle_activity"):
                self._flush()
        self._builders.append(builder)
        return None

    def _flush(self) -> None:
        for builder in self._builders:
            self._kept.add(builder.build())
        self._builders, self._n_pending = [], 0


def _count(counts: Counter[str], reason: str, n: int = 1) -> None:
    # texts that never repeat, such as ones with an address in them, must not fill the memory
    known = reason in counts or len(counts) < _MOST_REASONS
    counts[reason if known else "other reasons"] += n
