"""`Collector`: the `ActivityLogger` of one plugin in one session."""

from __future__ import annotations

import os
from collections.abc import Sequence

from devprof.capture.ledger import PluginLedger
from devprof.contract import HOST_CLOCK, ActivityLogger
from devprof.errors import PluginContractError
from devprof.model import ActivityBatch, BatchBuilder, DeviceInfo, GenericTraceActivity, ResourceInfo

__all__ = ["Collector", "record_limit"]

_FLUSH_ROWS = 8192


def record_limit() -> int:
    """Return how many records a plugin may deliver per session: ``DEVPROF_MAX_RECORDS``, ten million by default."""
    try:
        return max(1, int(os.environ.get("DEVPROF_MAX_RECORDS", "10000000")))
    except ValueError:
        return 10_000_000


class Collector(ActivityLogger):
    """Takes a plugin's records and counts what it cannot take.

    Used on one devprof thread during `process_trace`; `close()` makes every later call fail, so that a plugin that was given
    up on cannot write into a session that has gone on.
    """

    def __init__(self, ledger: PluginLedger, *, clock: str, limit: int | None = None) -> None:
        self._ledger = ledger
        self._clock = clock
        self._left = record_limit() if limit is None else limit
        self._pending: list[GenericTraceActivity] = []
        self._open = True
        self.batches: list[ActivityBatch] = []
        self.device_infos: list[DeviceInfo] = []
        self.resource_infos: list[ResourceInfo] = []

    def handle_activity(self, activity: GenericTraceActivity) -> None:
        """Take one record; a record that no column can hold is rejected and counted."""
        self._check(activity, GenericTraceActivity, "handle_activity")
        self._pending.append(activity)
        if len(self._pending) >= _FLUSH_ROWS:
            self._flush()

    def handle_activities(self, batch: ActivityBatch) -> None:
        """Take a batch."""
        self._check(batch, ActivityBatch, "handle_activities")
        if batch.clock not in (self._clock, HOST_CLOCK):
            raise PluginContractError(
                self._ledger.plugin,
                "logger.handle_activities",
                f"the batch's clock is {batch.clock!r}, expected {self._clock!r}: a batch is on the clock that the session's "
                "clock_domain() names, or on 'unix_ns'",
            )
        self._flush()
        self._take(batch)

    def handle_device_info(self, info: DeviceInfo) -> None:
        """Name a device's row."""
        self._check(info, DeviceInfo, "handle_device_info")
        self.device_infos.append(info)

    def handle_resource_info(self, info: ResourceInfo) -> None:
        """Name a resource's row."""
        self._check(info, ResourceInfo, "handle_resource_info")
        self.resource_infos.append(info)

    def handle_dropped(self, count: int | None, reason: str) -> None:
        """Count records that were lost before they reached devprof."""
        self._check(reason, str, "handle_dropped")
        if count is None:
            self._ledger.lost_unknown.append(reason)
        elif count < 0:
            raise PluginContractError(
                self._ledger.plugin, "logger.handle_dropped", f"count is {count}; expected 0 or more, or None for unknown"
            )
        elif count > 0:
            self._ledger.dropped[reason] += count

    def close(self) -> None:
        """Flush what is pending and refuse everything that comes later."""
        if self._open:
            self._flush()
            self._open = False

    def _check(self, value: object, expected: type, method: str) -> None:
        if not self._open:
            raise PluginContractError(
                self._ledger.plugin, f"logger.{method}", "called after process_trace ended; the logger is valid only during it"
            )
        if not isinstance(value, expected):
            raise PluginContractError(
                self._ledger.plugin,
                f"logger.{method}",
                f"got a {type(value).__name__}, expected a {expected.__name__}",
            )

    def _take(self, batch: ActivityBatch) -> None:
        if len(batch) > self._left:
            self._ledger.dropped["record limit reached"] += len(batch) - self._left
            batch = batch.take(slice(0, self._left))  # type: ignore[arg-type]
        self._left -= len(batch)
        if len(batch):
            self.batches.append(batch)

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._build(pending)

    def _build(self, records: Sequence[GenericTraceActivity]) -> None:
        builder = BatchBuilder(clock=self._clock)
        for record in records:
            builder.append(record)
        try:
            batch = builder.build()
        except Exception as error:  # any field may hold anything; what cannot be a column is rejected below
            self._split(records, error)
        else:
            self._take(batch)

    def _split(self, records: Sequence[GenericTraceActivity], error: Exception) -> None:
        if len(records) == 1:
            self._ledger.rejected[f"malformed record ({type(error).__name__})"] += 1
            return
        middle = len(records) // 2
        self._build(records[:middle])
        self._build(records[middle:])
