"""What device work had to wait for, and which device work a host call waited for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from devprof.analysis.intervals import Longs
from devprof.analysis.work import by_group, events_of_roles, launch_of, work
from devprof.model import Role
from devprof.store import ROLES, Trace

__all__ = ["DeviceOrder"]

_OTHER_STREAM, _EVENT_RECORD = "wait_on_stream", "wait_on_cuda_event_record_corr_id"
_LONG_AGO = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """Work of one row, by start; k pieces.

    Attributes:
        events: (k,) int64.
        launched_ns: (k,) int64, when the host had begun to launch it and all before it; unknown launches take no time.
        over_ns: (k,) int64, when it and all before it were over.
        latest: (k,) int64, the piece that `over_ns` is of.
    """

    events: Longs
    launched_ns: Longs
    over_ns: Longs
    latest: Longs


class DeviceOrder:
    """Order of the device work of a trace.

    Attributes:
        cause: (n,) int64, the host event that each piece of work was launched by: its call, else its op; -1: unknown.
        before: (n,) int64, the work on the same stream before each piece of work that was over last, -1: none.
        waits: by piece of work, the work on other streams that its stream was told to wait for before it.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.cause = _causes(trace)
        self.before: Longs = np.full(len(trace), -1, dtype=np.int64)
        self._streams: dict[int, _Stream] = {}
        events = work(trace)
        for row, positions in by_group(trace.row[events]):
            self._streams[row] = self._stream(events[positions])
        self.waits: dict[int, list[int]] = {}
        self._host_waits: dict[int, list[tuple[list[int], int]]] = {}
        self._read_syncs()
        self._copies = _blocking_copies(trace, events)
        self._rows_of_process = self._rows_by_process()
        self._synchronizes = np.array(["ynchronize" in text for text in trace.strings], dtype=np.bool_)

    def awaited(self, call: int, after_ns: int, until_ns: int) -> int:
        """Return the work whose end a host call waited for, -1: it did not wait.

        That is, of the work that was launched before the call and was over after one time and up to another, the one over last:
        on the streams that the call's sync records name; where there are none and its name says that it synchronizes, on all
        streams that its process uses. A call that lasted until its own copy was over waited for that, whatever it is called.
        """
        trace = self._trace
        begun_ns = int(trace.start_ns[call])
        found = [copy for copy in self._copies.get(call, ()) if after_ns < trace.end_ns[copy] <= until_ns]
        if call in self._host_waits:
            for rows, launched_ns in self._host_waits[call]:
                found += self._over(rows, min(launched_ns, begun_ns), after_ns, until_ns)
        elif self._synchronizes[trace.name[call]]:
            rows = self._rows_of_process.get(trace.rows[trace.row[call]].place, [])
            found += self._over(rows, begun_ns, after_ns, until_ns)
        return max(found, key=lambda event: (int(trace.end_ns[event]), -event), default=-1)

    def last(self, until_ns: int) -> int:
        """Return the work that was over last, or runs at a time; -1: there was none before it."""
        trace, events = self._trace, work(self._trace)
        events = events[trace.start_ns[events] < until_ns]
        return int(events[np.argmax(np.minimum(trace.end_ns[events], until_ns))]) if len(events) else -1

    def _over(self, rows: Iterable[int], launched_ns: int, after_ns: int, until_ns: int) -> list[int]:
        found = []
        for row in rows:
            stream = self._streams[row]
            at = int(np.searchsorted(stream.over_ns, until_ns, "right"))
            at = min(at, int(np.searchsorted(stream.launched_ns, launched_ns, "right"))) - 1
            if at >= 0 and stream.over_ns[at] > after_ns:
                found.append(int(stream.latest[at]))
        return found

    def _stream(self, events: Longs) -> _Stream:
        trace = self._trace
        events = events[np.argsort(trace.start_ns[events], kind="stable")]
        end_ns = trace.end_ns[events]
        over_ns = np.maximum.accumulate(end_ns)
        latest = events[np.maximum.accumulate(np.where(end_ns == over_ns, np.arange(len(events)), 0))]
        self.before[events[1:]] = latest[:-1]
        cause = self.cause[events]
        launched_ns = np.where(cause >= 0, trace.start_ns[cause], _LONG_AGO)
        return _Stream(events, np.maximum.accumulate(launched_ns), over_ns, latest)

    def _read_syncs(self) -> None:
        """Read the records that say which stream or call waited for what."""
        trace = self._trace
        records = events_of_roles(trace, Role.SYNC)
        calls = launch_of(trace, records)
        recorded_ns = _recorded_ns(trace, records)
        row_of = {(row.place, row.id): index for index, row in enumerate(trace.rows)}
        for record, call, until_ns in zip(records.tolist(), calls.tolist(), recorded_ns, strict=True):
            place, stream = trace.rows[trace.row[record]].place, trace.item(_OTHER_STREAM, record)
            other = row_of.get((place, stream)) if isinstance(stream, int) else None
            if "Wait" in trace.name_of(record):
                if other in self._streams and until_ns is not None:
                    asked_ns = int(trace.start_ns[call if call >= 0 else record])
                    self._stream_waits(int(trace.row[record]), asked_ns, other, until_ns)
            elif call >= 0:
                own = int(trace.row[record])
                rows = (
                    [own] if own in self._streams else [row for row in self._streams if trace.rows[row].place == place]
                )
                rows = [other] if other in self._streams else rows
                limit_ns = int(trace.start_ns[call]) if until_ns is None else until_ns
                self._host_waits.setdefault(call, []).append((rows, limit_ns))

    def _stream_waits(self, row: int, asked_ns: int, other: int, until_ns: int) -> None:
        """Note that the first work on a row launched from a time on waits for what was launched on another until a time."""
        if row not in self._streams:
            return
        waiting, awaited = self._streams[row], self._streams[other]
        at = int(np.searchsorted(waiting.launched_ns, asked_ns, "left"))
        last = int(np.searchsorted(awaited.launched_ns, until_ns, "right")) - 1
        if at < len(waiting.events) and last >= 0:
            self.waits.setdefault(int(waiting.events[at]), []).append(int(awaited.latest[last]))

    def _rows_by_process(self) -> dict[int, list[int]]:
        """Return the streams of each host process; those of unknown ones belong to all."""
        places = self._trace.place
        rows: dict[int, list[int]] = {place: [] for place in range(len(self._trace.places))}
        for row, stream in self._streams.items():
            causes = self.cause[stream.events]
            causes = causes[causes >= 0]
            for place in np.unique(places[causes]).tolist() if len(causes) else rows:
                rows[place].append(row)
        return rows


def _causes(trace: Trace) -> Longs:
    parent = trace.parent.astype(np.int64)
    on_device = trace.on_device
    return np.where((parent >= 0) & ~on_device[parent], parent, -1)


def _recorded_ns(trace: Trace, records: Longs) -> list[int | None]:
    """Return, for each sync record, when the event that it waits for was recorded on the host; None: unknown, or none."""
    numbers = [trace.item(_EVENT_RECORD, record) for record in records.tolist()]
    if not any(numbers):
        return [None] * len(numbers)
    launches = events_of_roles(trace, Role.LAUNCH)
    begun = dict(zip(trace.id[launches].tolist(), trace.start_ns[launches].tolist(), strict=True))
    return [begun.get(number) if isinstance(number, int) and number else None for number in numbers]


def _blocking_copies(trace: Trace, events: Longs) -> dict[int, list[int]]:
    """Return, by call, the copies that it made and that were over before it was; so copies of pageable memory are."""
    copies = events[trace.role[events] == ROLES.index(Role.COPY)]
    calls = launch_of(trace, copies)
    waited = (calls >= 0) & (trace.end_ns[copies] <= trace.end_ns[calls])
    found: dict[int, list[int]] = {}
    for copy, call in zip(copies[waited].tolist(), calls[waited].tolist(), strict=True):
        found.setdefault(call, []).append(copy)
    return found
