"""`Kept`: the records of one plugin that are in memory, within the limits of the session."""

from __future__ import annotations

import logging
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

import numpy as np

from devprof.capture.checks import check_batch
from devprof.capture.ledger import PluginLedger
from devprof.model import ActivityBatch, ActivityType, MetadataColumn
from devprof.model.columns import COLUMNS
from devprof.model.reasons import LET_GO, OVER_LIMIT
from devprof.store.limits import Limits, WhenFull
from devprof.store.spill import SpillFile
from devprof.store.totals import Totals

__all__ = ["MAX_BATCHES", "Kept"]

log = logging.getLogger("devprof.capture")

MAX_BATCHES = 4096
"""Batches that are kept with limits: a batch of few records takes some thousand bytes, whatever is in it."""

_BATCH_BYTES = 4096
_PARTS, _LEAST_IN_PART, _MOST_IN_PART = 32, 64, 1 << 16
_LONGEST_REASON = 200


@dataclass(slots=True)
class _Entry:
    """A batch, its size, when it came, and about when its last record started, Unix ns."""

    batch: ActivityBatch
    size_bytes: int
    came_ns: int
    latest_ns: int


class Kept:
    """What is kept of a plugin's records, in the order of delivery, or where the oldest are let go by time. For any thread.

    Attributes:
        let_go_through: by clock, the latest start of a record that was let go: up to there, what is kept has gaps.
        totals: by clock, sums over the records that were let go, under `WhenFull.TOTALS`.
    """

    def __init__(
        self,
        ledger: PluginLedger,
        requested: Set[ActivityType] | None,
        limits: Limits,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        roughly_ns: Callable[[str, int], int] | None = None,
    ) -> None:
        """Keep nothing yet.

        Args:
            ledger: account of the plugin.
            requested: kinds that the session asked the plugin for; None: records are not checked.
            limits: how much to keep.
            now_ns: the host's clock, Unix ns.
            roughly_ns: about which Unix time a clock's reading is, to know old records from new; by default itself.
        """
        self.let_go_through: dict[str, int] = {}
        self.totals: dict[str, Totals] = {}
        self._ledger = ledger
        self._requested = requested
        self._limits = limits
        self._now_ns = now_ns
        self._roughly_ns = roughly_ns or (lambda _, ticks: ticks)
        self._entries: list[_Entry] = []
        self._n_spilled = 0  # entries, from the first on
        self._records = self._size_bytes = 0  # in memory
        self._spill: SpillFile | None = None
        self._lock = threading.RLock()

    @property
    def batches(self) -> list[ActivityBatch]:
        """What is kept."""
        with self._lock:
            return [entry.batch for entry in self._entries]

    def take(self) -> list[ActivityBatch]:
        """Return what is kept, and keep it no longer."""
        with self._lock:
            found = self.batches
            self._entries.clear()
            self._records = self._size_bytes = self._n_spilled = 0
            return found

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest of what is kept came, Unix ns; None where nothing is kept."""
        with self._lock:
            return min((entry.came_ns for entry in self._entries), default=None)

    def is_full(self, pending: int) -> bool:
        """Say whether a record will be left out that comes behind `pending` others."""
        limits = self._limits
        return limits.when_full is WhenFull.STOP and limits.exceeded(self._records + pending + 1, self._size_bytes)

    def since(self, came_ns: int) -> tuple[list[ActivityBatch], int]:
        """Return the batches that came at a time or later, and how many records came before it."""
        with self._lock:
            early = sum(len(entry.batch) for entry in self._entries if entry.came_ns < came_ns)
            return [entry.batch for entry in self._entries if entry.came_ns >= came_ns], early

    def all_totals(self) -> dict[str, Totals]:
        """Return, by clock, the sums over all records: those let go and those kept; nothing but under `WhenFull.TOTALS`."""
        with self._lock:
            if self._limits.when_full is not WhenFull.TOTALS:
                return {}
            found: dict[str, Totals] = {}
            for clock, totals in self.totals.items():
                found.setdefault(clock, Totals()).merge(totals)
            for batch in self.batches:
                _fold(found, batch)
            return found

    def add(self, batch: ActivityBatch) -> None:
        """Take a batch: reject what no trace can hold, and keep within the limits."""
        with self._lock:
            self._add(batch)

    def _add(self, batch: ActivityBatch) -> None:
        if self._requested is not None:
            batch, rejected = check_batch(batch, self._requested)
            self._ledger.rejected.update(rejected)
        if self._limits.when_full is WhenFull.STOP:
            batch = self._what_fits(batch)
        when_full = self._limits.when_full
        if when_full in (WhenFull.RING, WhenFull.TOTALS):
            for part in self._in_parts(batch):
                insort(self._entries, self._counted(part), key=lambda entry: entry.latest_ns)
            self._let_go_oldest()
        elif len(batch):
            self._entries.append(self._counted(batch))
            if when_full is WhenFull.SPILL:
                self._spill_oldest()

    def _counted(self, batch: ActivityBatch) -> _Entry:
        latest_ns = self._roughly_ns(batch.clock, int(batch.start.max()))
        entry = _Entry(batch, _size_of(batch), self._now_ns(), latest_ns)
        self._records += len(batch)
        self._size_bytes += entry.size_bytes
        return entry

    def _in_parts(self, batch: ActivityBatch) -> Iterator[ActivityBatch]:
        """Yield a delivery in parts, so that its oldest records can be let go without the others."""
        most = _MOST_IN_PART
        if self._limits.max_records is not None:
            most = min(most, self._limits.max_records // _PARTS)
        if self._limits.max_bytes is not None:
            most = min(most, self._limits.max_bytes // (_PARTS * _bytes_per_record(batch)))
        most = max(most, _LEAST_IN_PART)
        if 0 < len(batch) <= most:
            yield batch
            return
        order = np.argsort(batch.start, kind="stable")
        for first in range(0, len(batch), most):
            yield batch.take(order[first : first + most])  # a copy: a view would keep the whole delivery in memory

    def _what_fits(self, batch: ActivityBatch) -> ActivityBatch:
        if not self._limits.exceeded(self._records + len(batch), self._size_bytes + _size_of(batch)):
            return batch
        room = len(batch)
        if self._limits.max_records is not None:
            room = min(room, self._limits.max_records - self._records)
        if self._limits.max_bytes is not None:
            room = min(room, (self._limits.max_bytes - self._size_bytes) // _bytes_per_record(batch))
        room = max(room, 0)
        if room < len(batch):
            self._ledger.dropped[OVER_LIMIT] += len(batch) - room
            batch = batch.take(slice(room))
        return batch

    # -- letting go ---------------------------------------------------------------------------------------------------

    def _let_go_oldest(self) -> None:
        n_gone = 0
        while n_gone < len(self._entries) and (self._is_too_much or len(self._entries) - n_gone > MAX_BATCHES):
            entry = self._entries[n_gone]
            n_gone += 1
            self._records -= len(entry.batch)
            self._size_bytes -= entry.size_bytes
            self._let_go(entry.batch)
        del self._entries[:n_gone]

    def _let_go(self, batch: ActivityBatch) -> None:
        self._ledger.dropped[LET_GO] += len(batch)
        latest = int(batch.start.max())
        self.let_go_through[batch.clock] = max(latest, self.let_go_through.get(batch.clock, latest))
        if self._limits.when_full is WhenFull.TOTALS:
            _fold(self.totals, batch)

    @property
    def _is_too_much(self) -> bool:
        return self._limits.exceeded(self._records, self._size_bytes)

    # -- spilling -----------------------------------------------------------------------------------------------------

    def _spill_oldest(self) -> None:
        limits = self._limits
        while self._n_spilled < len(self._entries) and self._is_too_much:
            entry = self._entries[self._n_spilled]
            try:
                if self._spill is None:
                    self._spill = SpillFile(limits.spill_dir)
                entry.batch = _spilled(entry.batch, self._spill)
            except OSError as error:
                self._disk_failed(error)
                return
            self._n_spilled += 1
            self._records -= len(entry.batch)
            self._size_bytes -= entry.size_bytes

    def _disk_failed(self, error: OSError) -> None:
        """Go on as with `WhenFull.STOP`: what is kept stays, further records are counted as lost."""
        reason = f"cannot spill to a file: {error.strerror or error}"[:_LONGEST_REASON]
        log.warning("plugin %r: %s; further records are left out", self._ledger.plugin, reason)
        self._ledger.errors.append(reason)
        self._limits = Limits(self._limits.max_records, self._limits.max_bytes)


def _spilled(batch: ActivityBatch, file: SpillFile) -> ActivityBatch:
    """Return the batch with its columns in a file."""
    columns = [getattr(batch, key) for key in COLUMNS]
    tables = [*batch.metadata.items(), *batch.counters.items()]
    values = [column.values for _, column in tables]
    present = [column.present for _, column in tables if column.present is not None]
    arrays = [*columns, *values, *present]
    views = iter(file.put([np.ascontiguousarray(array).data for array in arrays]))
    back = [np.frombuffer(next(views), dtype=array.dtype).reshape(array.shape) for array in arrays]
    for array in back:
        array.flags.writeable = False
    places = iter(back)
    fixed = {key: next(places) for key in COLUMNS}
    valued = [next(places) for _ in values]
    given = [None if column.present is None else next(places) for _, column in tables]
    made = [
        (key, MetadataColumn(column.kind, new, has))
        for (key, column), new, has in zip(tables, valued, given, strict=True)
    ]
    n = len(batch.metadata)
    return ActivityBatch(batch.strings, **fixed, metadata=dict(made[:n]), counters=dict(made[n:]), clock=batch.clock)


def _fold(totals: dict[str, Totals], batch: ActivityBatch) -> None:
    mine = totals.setdefault(batch.clock, Totals())
    mine.add(batch.strings, batch.name, batch.activity_type, batch.end - batch.start)


def _size_of(batch: ActivityBatch) -> int:
    return _BATCH_BYTES + _bytes_per_record(batch) * len(batch)


def _bytes_per_record(batch: ActivityBatch) -> int:
    columns = sum(np.dtype(dtype).itemsize for dtype in COLUMNS.values())
    n = max(len(batch), 1)
    tables = [*batch.metadata.values(), *batch.counters.values()]
    further = sum(column.values.nbytes + (0 if column.present is None else column.present.nbytes) for column in tables)
    return columns + -(-further // n)
