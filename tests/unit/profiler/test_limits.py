"""Profiles with limits, and questions while they record: a ring, sums, snapshots; what their traces hold at the edges."""

from __future__ import annotations

import gc
import math
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import devprof
from devprof import correlation, rules
from devprof.contract import ActivityLogger
from devprof.errors import SessionError, UsageError
from devprof.model import ActivityBatch, ActivityType
from devprof.model.reasons import BEFORE_WINDOW, LET_GO, OVER_LIMIT
from devprof.profiler import profile
from devprof.registry import register, unregister
from devprof.store import Trace
from devprof.store.limits import Limits, WhenFull
from devprof.testing import ScriptedProfiler, plugin_of

LAUNCH, KERNEL = ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.CONCURRENT_KERNEL


class Device:
    """Launches work that is over at once; its plugin hands it over at each flush and at the end."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self.launched = 0
        self.now_ns: Any = None
        self.plugin: Any = None

    def launch(self) -> None:
        self.launched += 1
        self.rows.append((self.now_ns(), correlation.current().op_id, self.launched))

    def give(self, logger: ActivityLogger) -> None:
        rows, self.rows = self.rows, []
        if rows:
            at, op, number = np.array(rows, dtype=np.int64).T
            for kind, name in ((LAUNCH, "launch"), (KERNEL, "kernel")):
                delay = 0 if kind is LAUNCH else 1
                logger.handle_activities(
                    ActivityBatch.from_columns(
                        [name], activity_type=int(kind), name=0, start=at + delay, end=at + delay + 1, id=number, linked=op,
                        thread_id=threading.get_native_id() if kind is LAUNCH else 0,
                    )
                )  # fmt: skip


@pytest.fixture
def device() -> Iterator[Device]:
    """A device with a plugin "flushed" that can hand over while it records."""
    made = Device()

    def process_trace(logger: ActivityLogger, linked: Any, start_ns: int, end_ns: int) -> None:
        made.give(logger)

    plugin = ScriptedProfiler("flushed", methods={"process_trace": process_trace, "flush_trace": made.give})
    configure = plugin.configure

    def watched(kinds: Any, config: Any, **options: Any) -> Any:
        made.now_ns = config.now_ns
        return configure(kinds, config, **options)

    made.plugin = plugin
    plugin.configure = watched  # type: ignore[method-assign]
    register(plugin_of(plugin), "flushed")
    yield made
    unregister("flushed")


def on(device: Device | None, **options: Any) -> profile:
    return profile(activities=["cpu"] if device is None else ["cpu", "flushed"], host="python", **options)


def work(device: Device, count: int, name: str = "step") -> None:
    for number in range(count):
        with devprof.record_function(f"{name} {number % 3}"):
            device.launch()


def broken(trace: Trace) -> list[str]:
    """Return what rules find beyond launches that are gone, which a ring cannot help."""
    return [str(found) for found in rules.check(trace) if found.severity.name != "INFO"]


def account(trace: Trace) -> dict[str, Any]:
    report: Any = trace.facts["report"]
    return dict(report)


def closes(trace: Trace, ranges: int, launches: int) -> None:
    """The trace's own account says what the program did, and what of it is in the trace."""
    host, plugin = (
        account(trace)["host_events"],
        account(trace)["plugins"].get("flushed", {"produced": 0, "emitted": 0}),
    )
    assert (host["produced"], plugin["produced"]) == (ranges, 2 * launches)
    spans = len(trace.of_type(ActivityType.GPU_USER_ANNOTATION))
    assert host["emitted"] + plugin["emitted"] + spans == len(trace)


# -- what a user may say -----------------------------------------------------------------------------------------------


def test_limits_reach_the_host(noting: Any) -> None:
    profile(max_records=10, when_full="ring")
    profile()
    assert [host.options.limits for host in noting] == [Limits(10, None, WhenFull.RING), None]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_records": -1}, "max_records is -1"),
        ({"when_full": "never"}, "when_full is 'never'"),
        ({"when_full": "ring", "with_stack": True}, "with_stack=True keeps every call"),
        ({"when_full": "totals", "with_stack": True}, "with_stack=True keeps every call"),
    ],
)
def test_what_does_not_go_together_is_refused_in_words(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        profile(host="python", activities=["cpu"], **options)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "5"])
def test_a_snapshot_of_no_time_is_refused(seconds: Any, noting: Any) -> None:
    with profile() as prof, pytest.raises(UsageError, match="expected more than 0"):
        prof.snapshot(seconds)


def test_a_snapshot_is_refused_before_the_start_and_after_the_stop() -> None:
    prof = on(None)
    for _ in range(2):
        with pytest.raises(SessionError, match="not running"):
            prof.snapshot()
        prof.start()
        prof.snapshot()
        prof.stop()


def test_a_snapshot_is_refused_in_steps_that_are_not_recorded() -> None:
    with on(None, schedule=devprof.schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(2):
            with pytest.raises(SessionError, match="nothing is being recorded"):
                prof.snapshot()
            prof.step()
        assert prof.snapshot().facts["snapshot"] == {"seconds": None}


def test_a_plugins_hook_cannot_ask_the_profile_that_waits_for_it() -> None:
    said: list[str] = []

    def flush_trace(logger: ActivityLogger) -> None:
        for ask in (prof.snapshot, prof.totals):
            try:
                ask()
            except SessionError as error:
                said.append(str(error))

    register(plugin_of(ScriptedProfiler("asking", methods={"flush_trace": flush_trace})), "asking")
    try:
        with profile(activities=["cpu", "asking"], host="python") as prof:
            prof.snapshot()
    finally:
        unregister("asking")
    assert [text.partition(" inside")[0] for text in said] == ["snapshot()", "totals()"]


def test_totals_are_refused_where_none_are_kept() -> None:
    with on(None) as prof, pytest.raises(UsageError, match="when_full='totals'"):
        prof.totals()


# -- a ring ------------------------------------------------------------------------------------------------------------


def test_a_ring_leaves_a_whole_end_of_the_session_and_closes_its_account(device: Device) -> None:
    with on(device, when_full="ring", max_records=2048) as prof, devprof.record_function("everything"):
        work(device, 10_000)
    trace = prof.trace
    closes(trace, 10_001, 10_000)
    assert broken(trace) == []
    assert prof.report.clean
    assert trace.window_start_ns > 0
    kernels, ranges = trace.of_type(KERNEL), trace.of_type(ActivityType.USER_ANNOTATION)
    assert len(kernels) >= 500
    # whatever began in the window is there with its range: from its beginning on nothing is missing
    assert (trace.start_ns[kernels] >= trace.window_start_ns).all()
    assert (trace.linked[kernels] != 0).sum() >= len(kernels) - 1
    assert len(ranges) - 1 in (len(kernels), len(kernels) + 1)
    (outer,) = trace.named("everything")[:1]
    assert trace.start_ns[outer] < trace.window_start_ns < trace.end_ns[outer]
    assert account(trace)["plugins"]["flushed"]["dropped"][LET_GO] > 0
    assert trace.facts["limits"] == {"max_records": 2048, "max_bytes": None, "when_full": "ring"}


def test_launches_that_are_gone_leave_their_work_and_a_note() -> None:
    plugin = ScriptedProfiler("late")
    late: list[ActivityBatch] = []

    def flush_trace(logger: ActivityLogger) -> None:
        while late:
            logger.handle_activities(late.pop())

    plugin.methods = {"flush_trace": flush_trace}
    register(plugin_of(plugin), "late")
    try:
        with profile(activities=["cpu", "late"], host="python", when_full="ring", max_records=512) as prof:
            with devprof.record_function("old"):
                op = correlation.current().op_id
            for _ in range(4_000):
                with devprof.record_function("new"):
                    pass
            end = prof.snapshot().window_end_ns
            late.append(
                ActivityBatch.from_columns(
                    ["k"], activity_type=int(KERNEL), name=[0] * 3, start=[end, end, end], end=[end + 1] * 3, linked=op
                )
            )
            trace = prof.snapshot()
    finally:
        unregister("late")
    ledger = account(trace)["plugins"]["late"]
    assert (ledger["emitted"], ledger["linked"]) == (3, 0)
    assert ledger["notes"]["op before the window"] == 3
    assert trace.linked[trace.of_type(KERNEL)].tolist() == [0, 0, 0]


def test_what_a_stop_leaves_out_is_lost_and_said_in_one_warning(device: Device) -> None:
    with pytest.warns(devprof.errors.LossWarning, match="were lost") as warned, on(device, max_records=1000) as prof:
        work(device, 5_000)
    assert len(warned) == 1
    trace = prof.trace
    closes(trace, 5_000, 5_000)
    assert not prof.report.clean
    assert account(trace)["plugins"]["flushed"]["dropped"] == {OVER_LIMIT: 9_000}
    assert account(trace)["host_events"]["dropped"][OVER_LIMIT] > 3_000
    starts = np.sort(trace.start_ns[trace.of_type(ActivityType.USER_ANNOTATION)])
    assert starts[-1] < trace.window_end_ns
    assert "events of the host were lost" in str(prof.report.complaints())


def test_what_is_spilled_is_all_there_at_the_end(device: Device, tmp_path: Any) -> None:
    with on(device, when_full="spill", max_records=600, spill_dir=tmp_path) as prof:
        work(device, 10_000)
    closes(prof.trace, 10_000, 10_000)
    assert broken(prof.trace) == []
    assert len(prof.trace.of_type(KERNEL)) == 10_000
    assert set(prof.trace.parent[prof.trace.of_type(LAUNCH)].tolist()) == set(range(10_000))
    assert list(tmp_path.iterdir()) == []


def test_totals_are_there_while_recording_and_after_it(device: Device) -> None:
    with on(device, when_full="totals", max_records=600) as prof:
        work(device, 6_000)
        halfway = {(row.source, row.name): row.count for row in prof.totals()}
        work(device, 3_000)
    expected = {("host", f"step {n}"): 2000 for n in range(3)} | {
        ("flushed", "launch"): 6000,
        ("flushed", "kernel"): 6000,
    }
    assert halfway == expected
    final = {(row.source, row.name): (row.count, row.min_ns, row.total_ns) for row in prof.totals()}
    assert final["flushed", "kernel"] == (9000, 1, 9000)
    assert [final["host", f"step {n}"][0] for n in range(3)] == [3000] * 3
    assert len(prof.trace) < 3_000


# -- snapshots ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"when_full": "ring", "max_records": 2048}])
def test_snapshots_are_traces_of_the_part_so_far_and_change_nothing(device: Device, options: dict[str, Any]) -> None:
    with on(device, **options) as prof:
        with devprof.record_function("outer"):
            work(device, 3_000)
            first = prof.snapshot()
            again = prof.snapshot()
            work(device, 500)
        last = prof.snapshot()
    for trace, ranges, launches in (
        (first, 3001, 3000),
        (again, 3001, 3000),
        (last, 3501, 3500),
        (prof.trace, 3501, 3500),
    ):
        closes(trace, ranges, launches)
        assert broken(trace) == []
        (outer,) = [at for at in trace.named("outer").tolist() if not trace.on_device[at]]
        is_open = trace in (first, again)
        assert (trace.items_of(outer).get("finished") is False) is is_open
        assert not is_open or trace.end_ns[outer] == trace.window_end_ns
    assert len(first) == len(again)
    if not options:
        assert len(prof.trace.of_type(KERNEL)) == 3_500


def test_a_snapshot_of_seconds_holds_what_began_then_and_what_was_open(device: Device) -> None:
    with on(device) as prof, devprof.record_function("outer"):
        work(device, 1_000, "early")
        threading.Event().wait(0.3)
        work(device, 50, "late")
        trace = prof.snapshot(0.25)
    names = {trace.name_of(at) for at in range(len(trace)) if not trace.on_device[at]}
    assert names == {"outer", "late 0", "late 1", "late 2", "launch"}
    assert len(trace.of_type(KERNEL)) == 50
    assert trace.window_end_ns - trace.window_start_ns >= 0.25e9
    closes(trace, 1_051, 1_050)
    assert account(trace)["host_events"]["dropped"] == {BEFORE_WINDOW: 1_000}
    assert account(trace)["plugins"]["flushed"]["dropped"] == {BEFORE_WINDOW: 2_000}
    assert broken(trace) == []


def test_a_plugin_that_hands_over_nothing_before_the_stop_is_named_in_a_snapshot() -> None:
    register(plugin_of(ScriptedProfiler("silent")), "silent")
    try:
        with profile(activities=["cpu", "silent"], host="python") as prof:
            report = account(prof.snapshot())
    finally:
        unregister("silent")
    assert report["notes"] == [
        "silent: it cannot hand over records while it records (flush_trace), so its records come at the stop"
    ]


def test_snapshots_come_from_any_thread_beside_the_program_and_its_stop(device: Device) -> None:
    taken: list[Trace] = []
    errors: list[BaseException] = []
    recording = threading.Event()

    def look() -> None:
        while True:
            try:
                taken.append(prof.snapshot(0.05))
                recording.set()
            except SessionError:
                return
            except BaseException as error:  # noqa: BLE001  # the test looks at it
                errors.append(error)
                return

    with on(device, when_full="ring", max_records=4096) as prof:
        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        while not recording.wait(0):
            work(device, 500)
        work(device, 5_000)
    for thread in threads:
        thread.join(timeout=60)
    assert errors == []
    assert taken
    assert [found for trace in taken for found in broken(trace)] == []
    for trace in taken:
        ledger = account(trace)["plugins"]["flushed"]
        assert ledger["produced"] == ledger["emitted"] + sum(ledger["dropped"].values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_snapshot_in_the_child_of_a_fork_is_refused() -> None:
    with on(None, when_full="ring") as prof:
        pid = os.fork()
        if pid == 0:
            try:
                prof.snapshot()
            except SessionError as error:
                os._exit(0 if "forked" in str(error) else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_sessions_leave_nothing_behind(device: Device) -> None:
    def sessions(count: int) -> None:
        for _ in range(count):
            with on(device, when_full="ring", max_records=2048) as prof:
                work(device, 3)
                prof.snapshot()
            del device.plugin.sessions[:], device.plugin.asked[:]  # it keeps them, for other tests
        gc.collect()

    sessions(100)
    before, threads = sys.getallocatedblocks(), threading.active_count()
    sessions(100)
    assert sys.getallocatedblocks() - before < 300
    assert threading.active_count() <= threads
