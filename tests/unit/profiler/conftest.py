"""A host that only notes what it is asked, and profiles on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from devprof.capture import SessionReport
from devprof.capture.hosting import ProfileOptions, ProfilerStats, WantedActivity
from devprof.model import ActivityBatch, ActivityType
from devprof.store import HOST_BACKEND, Place, PlaceKind, Row, Trace, TraceBuilder
from devprof.store.totals import NameTotal


def trace_of(*names: str, at_ns: int = 1000) -> Trace:
    """Return a trace of host ranges of these names, one after the other, 10 ns each."""
    builder = TraceBuilder()
    row = builder.row(Row(builder.place(Place(1, PlaceKind.HOST, "python", backend=HOST_BACKEND)), 7))
    start = at_ns + 10 * np.arange(len(names))
    batch = ActivityBatch.from_columns(
        names, activity_type=int(ActivityType.USER_ANNOTATION), name=range(len(names)), start=start, end=start + 10
    )
    builder.add(batch, row)
    return builder.build(window_start_ns=at_ns, window_end_ns=at_ns + 10 * len(names), facts={"host": "noting"})


class NotingHost:
    """Notes the calls; raises what `raises` holds for a call, once."""

    name = "noting"
    step_counters = ()
    made: ClassVar[list[NotingHost]] = []

    def __init__(self, options: ProfileOptions) -> None:
        self.options = options
        self.trace_id = ""
        self.stats = ProfilerStats()
        self.report: SessionReport | None = None
        self.calls: list[Any] = []
        self.metadata: dict[str, str] = {}
        self.raises: dict[str, BaseException] = {}
        self.n_cycles = 0
        NotingHost.made.append(self)

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call in self.raises:
            raise self.raises.pop(call)

    def prepare(self) -> None:
        self.trace_id = self.options.make_trace_id()
        self._note("prepare")

    def start(self) -> None:
        self._note("start")

    def stop(self) -> None:
        self.n_cycles += 1
        self.report = SessionReport(self.name)
        self._note("stop")

    def cancel(self, reason: str) -> None:
        self._note("cancel")

    def toggle(self, enabled: bool, activities: tuple[WantedActivity, ...]) -> None:
        self.calls.append((enabled, [one.name for one in activities]))

    def snapshot(self, seconds: float | None) -> Trace:
        self.calls.append(("snapshot", seconds))
        return trace_of("so far")

    def totals(self) -> list[NameTotal]:
        return []

    def stopped_early(self) -> bool:
        return False

    def check_thread(self, call: str) -> None:
        pass

    def add_metadata_json(self, key: str, value: str) -> None:
        self.metadata[key] = value

    def trace(self) -> Trace:
        return trace_of(f"cycle {self.n_cycles}", at_ns=1000 * self.n_cycles)

    def export_chrome_trace(self, path: str, trace: Callable[[], Trace]) -> None:
        self.calls.append((path, len(trace())))


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[NotingHost]]:
    """Let profiles be made on this host; the list holds those that were made."""
    NotingHost.made.clear()
    monkeypatch.setattr("devprof.profiler.front_door.make_host", lambda name, options: NotingHost(options))
    yield NotingHost.made
    NotingHost.made.clear()
