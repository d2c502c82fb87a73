"""A replayed session delivers what was recorded, with live ids and threads, at exact or at live times."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sessions import KERNEL, ZERO_NS, Session, recording_of

from devprof import correlation
from devprof.contract import SessionConfig
from devprof.errors import PluginWarning, UsageError
from devprof.host import RecordFunction, record_function
from devprof.model import ActivityType, GenericTraceActivity
from devprof.profiler import profile
from devprof.registry import register, unregister
from devprof.replay import HostRanges, Recording, ReplayProfiler, faults_of, run_host_side, save
from devprof.replay.player import Live
from devprof.replay.recording import AXIS_NS
from devprof.testing import plugin_of

# what the made-up backend loses and says is part of every replay
pytestmark = pytest.mark.filterwarnings("ignore::devprof.errors.LossWarning")


def with_host(recording: Recording, *names: str) -> Recording:
    """Give a recording ranges with the op ids from 41 on, each within the one before."""
    (session,) = recording.sessions
    n = len(names)
    start = np.full(n, session.window_start_ns) + 1000 * (1 + np.arange(n))
    end = np.full(n, session.window_end_ns) - 1000 * (1 + np.arange(n))
    users = np.array([name.startswith("user") for name in names], np.bool_)
    session.host = HostRanges(names, np.arange(41, 41 + n), np.ones(n, np.int64), start, end, users)
    return recording


@contextmanager
def registered(recording: Recording | Path, **options: Any) -> Iterator[ReplayProfiler]:
    profiler = ReplayProfiler(recording, name="again", **options)
    register(plugin_of(profiler), "again")
    try:
        yield profiler
    finally:
        unregister("again")


def replayed(recording: Recording | Path, *, profile_memory: bool = False, **options: Any) -> Any:
    with registered(recording, **options) as profiler:
        prof = profile(activities=["cpu", "again"], host="python", profile_memory=profile_memory)
        with prof:
            run_host_side(profiler.player, paced=not profiler.exact)
    return prof


def work(prof: Any) -> list[tuple[str, int, int]]:
    trace = prof.trace
    return [
        (
            trace.name_of(event),
            int(trace.start_ns[event]) - trace.window_start_ns,
            int(trace.end_ns[event] - trace.start_ns[event]),
        )
        for event in trace.of_type(KERNEL).tolist()
    ]


def owners(prof: Any) -> dict[str, str]:
    trace = prof.trace
    ranges = trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION).tolist()
    names = {int(trace.id[event]): trace.name_of(event) for event in ranges}
    return {trace.name_of(e): names.get(int(trace.linked[e]), "") for e in trace.of_type(KERNEL).tolist()}


def test_work_is_where_it_was_in_the_window_and_under_the_op_that_launched_it() -> None:
    recording = with_host(recording_of(), "outer", "inner")
    prof = replayed(recording)
    (session,) = recording.sessions
    zero = session.samples[0]
    since_window = [
        zero.host_before_ns
        + (zero.host_after_ns - zero.host_before_ns) // 2
        + ticks
        - zero.device_ticks
        - session.window_start_ns
        for ticks in (70_000, 80_000)
    ]
    found = work(prof)
    assert [(name, length) for name, _, length in found] == [("kernel 1", 5_000), ("kernel 2", 5_000)]
    # the fit of the recorded clock may be off by half a reading
    assert all(abs(start - expected) <= 2_000 for (_, start, _), expected in zip(found, since_window, strict=True))
    assert owners(prof) == {"kernel 1": "outer", "kernel 2": "inner"}
    assert work(replayed(recording)) == found


def test_the_account_is_that_of_the_backend() -> None:
    prof = replayed(with_host(recording_of(), "outer", "inner"))
    ledger = prof.report.ledgers["again"]
    assert dict(ledger.dropped) == {"the ring was full": 3}
    assert ledger.lost_unknown == ["the vendor does not say"]
    assert ledger.errors == ["a page fault"]


def test_records_outside_of_the_recorded_window_are_left_out_with_its_reasons() -> None:
    class Early(Session):
        def calls(self) -> list[GenericTraceActivity]:
            first, second = super().calls()
            return [replace(first, start_ns=ZERO_NS - 5_000, end_ns=ZERO_NS - 4_000), second]

    prof = replayed(with_host(recording_of(Early), "outer", "inner"))
    assert [name for name, _, _ in work(prof)] == ["kernel 2"]
    dropped = prof.report.ledgers["again"].dropped
    assert (dropped["before window"], dropped["launched outside window"]) == (1, 1)


def test_a_session_that_asks_for_fewer_kinds_gets_fewer() -> None:
    with registered(recording_of()), profile(activities=["cpu", {"again": [KERNEL]}], host="python") as prof:
        pass
    kinds = set(prof.trace.activity_type.tolist())
    assert int(ActivityType.PRIVATEUSE1_RUNTIME) not in kinds
    assert len(work(prof)) == 2


def test_an_id_that_no_recorded_op_had_is_no_live_op_either() -> None:
    recording = with_host(recording_of(), "outer")  # 42 is nobody's
    with registered(recording) as profiler:
        session: Any = profiler.configure(recording.available, SessionConfig(host="python"))
        for live in (7, 42):
            session.push_correlation_id(live)
        taken: list[Any] = []
        correlation.new_generation()
        session.process_trace(
            type(
                "L",
                (),
                {
                    "handle_activities": lambda _, batch: taken.append(batch),
                    **{
                        hook: lambda *args: None
                        for hook in ("handle_device_info", "handle_resource_info", "handle_dropped")
                    },
                },
            )(),
            None,
            0,
            1,
        )
    linked = {one.linked for batch in taken for one in batch.activities()}
    assert linked == {7, 42 + 2**40}


def test_ranges_of_several_threads_run_on_as_many_and_those_that_cross_are_closed() -> None:
    recording = with_host(recording_of(), "outer", "inner", "user 3")
    host = recording.sessions[0].host
    recording.sessions[0].host = replace(
        host, thread_id=np.array([1, 2, 1]), end_ns=host.end_ns + np.array([0, 0, 9_000])
    )
    prof = replayed(recording)
    trace = prof.trace
    rows = {
        trace.name_of(e): trace.rows[trace.row[e]].id
        for e in trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)
    }
    assert rows["outer"] == rows["user 3"] == threading.get_native_id()
    assert rows["inner"] != rows["outer"]
    assert owners(prof)["kernel 2"] == "inner"
    (user,) = trace.of_type(ActivityType.USER_ANNOTATION)[:1].tolist()
    assert trace.name_of(int(trace.parent[user])) == "outer"


def test_a_recording_with_two_sessions_serves_both_cycles_and_begins_again() -> None:
    first, second = recording_of(), recording_of()
    second.sessions[0].batches = second.sessions[0].batches[:1]
    first.sessions += second.sessions
    counts = []
    with registered(first):
        for _ in range(3):
            with profile(activities=["again"], host="python") as prof:
                pass
            counts.append(len(work(prof)))
    assert counts == [2, 0, 2]


@pytest.mark.parametrize(("exact", "refused"), [(None, False), (False, False), (True, True)])
def test_times_are_live_ones_under_torch_and_exact_ones_are_refused_where_they_are_asked_for(
    exact: bool | None, refused: bool
) -> None:
    profiler = ReplayProfiler(recording_of(), exact=exact)
    config = SessionConfig(host="torch")
    if refused:
        with pytest.raises(UsageError, match="exact=True is for devprof's own host"):
            profiler.configure(frozenset(), config)
    else:
        session = profiler.configure(frozenset(), config)
        assert session is not None
        assert session.clock_domain() == profiler.recording.sessions[0].domain


def test_what_a_backend_called_after_the_last_launch_stays_within_a_window_that_ends_sooner() -> None:
    (session,) = recording_of().sessions
    session.window_end_ns = 2_000
    live = Live(session, lambda: 51_000)
    live.start(1_000)
    live.slip(1_500, 51_500)
    times = np.array([1_400, 1_500, 1_600, 1_900, 2_000, 2_100])
    assert (times + live.shifts_until(times, 51_600)).tolist() == [51_400, 51_500, 51_520, 51_580, 51_600, 52_100]
    assert (times + live.shifts_until(times, 52_500)).tolist() == (times + 50_000).tolist()
    assert (times + live.shifts_until(times, 0)).tolist() == (times + 50_000).tolist()


def test_live_times_follow_a_clock_that_devprof_measures_again() -> None:
    prof = replayed(with_host(recording_of(), "outer", "inner"), exact=False)
    clock = prof.report.ledgers["again"].clock
    assert (clock["clock"], clock["virtual"]) == ("npu", False)
    assert [(name, round(length, -2)) for name, _, length in work(prof)] == [("kernel 1", 5_000), ("kernel 2", 5_000)]


def test_a_method_that_raised_raises_again_and_the_program_goes_on() -> None:
    class Fails(Session):
        def get_metadata(self) -> dict[str, object]:
            return ["no"]  # type: ignore[return-value]

    with pytest.warns(PluginWarning, match=r"get_metadata: returned list"):
        prof = replayed(recording_of(Fails))
    assert len(work(prof)) == 2


def test_a_configure_that_returned_none_returns_none() -> None:
    recording = recording_of()
    recording.sessions[0].refused = True
    prof = replayed(recording)
    assert len(prof.trace) == 0
    assert prof.report.ledgers["again"].produced == 0


def test_memory_is_reported_again_within_the_range_that_it_was_reported_in() -> None:
    def body(session: Any) -> None:
        session._session.memory.report_memory_usage(4096, 64, 64, 128, 0)

    recording = recording_of(Session, body)
    (session,) = recording.sessions
    (report,) = session.reports
    at = np.array([report.at_ns - 500])
    session.host = HostRanges(("op",), np.array([41]), np.ones(1, np.int64), at, at + 1000, np.zeros(1, np.bool_))
    prof = replayed(recording, profile_memory=True)
    (event,) = prof.trace.named("[memory]").tolist()
    assert prof.trace.items_of(event)["Bytes"] == 64


def test_what_there_is_not_is_said() -> None:
    empty = replace(recording_of(), sessions=[])
    with pytest.raises(UsageError, match="the recording has no session"):
        ReplayProfiler(empty)
    recording = recording_of()
    recording.sessions[0].scope = "C101 python"
    with pytest.raises(UsageError, match="no session that a program could replay"):
        ReplayProfiler(recording).configure(recording.available, SessionConfig(host="python"))


# -- faults ----------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::devprof.errors.DevprofWarning")
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("drop:2", ["kernel 1"]),
        ("drop-told:2", ["kernel 1"]),
        ("missing-flush", ["kernel 1"]),
        ("late-flush", []),
        ("reorder", ["kernel 1", "kernel 2"]),
        ("no-ids", ["kernel 1", "kernel 2"]),
    ],
)
def test_records_are_lost_as_asked_for(fault: str, expected: list[str]) -> None:
    prof = replayed(with_host(recording_of(), "outer", "inner"), faults=fault)
    assert sorted(name for name, _, _ in work(prof)) == expected
    told = prof.report.ledgers["again"].dropped["lost by the replay, on request"]
    assert told == (1 if fault.startswith("drop-told") else 0)


@pytest.mark.filterwarnings("ignore::devprof.errors.DevprofWarning")
def test_a_late_flush_comes_with_the_next_session() -> None:
    counts = []
    with registered(recording_of(), faults="late-flush"):
        for _ in range(3):
            with profile(activities=["again"], host="python") as prof:
                pass
            counts.append(len(work(prof)))
    assert counts == [0, 2, 2]


@pytest.mark.filterwarnings("ignore::devprof.errors.DevprofWarning")
def test_ids_are_wrong_as_asked_for() -> None:
    recording = with_host(recording_of(), "outer", "inner")
    wrong, none = (replayed(recording, faults=fault).report.ledgers["again"] for fault in ("wrong-ids", "no-ids"))
    assert (wrong.linked, wrong.notes["op id unknown to the host"]) == (0, 4)
    assert (none.linked, none.notes["unlinked"]) == (0, 2)
    twice = replayed(recording, faults="duplicate:1").report.ledgers["again"]
    assert twice.dropped["delivered twice"] + twice.rejected["delivered twice"] == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("explode", "there is no fault 'explode'; expected one of reorder"),
        ("drop:0", "no number that it can have"),
        ("drop:x", "no number that it can have"),
        ("slow", "needs the name of a method: slow:stop"),
        ("reorder:3", "takes no number"),
        ("clock-offset:nan", "no number that it can have"),
        ("clock-drift:1e300", "no number that it can have"),
    ],
)
def test_a_fault_that_there_is_not_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        faults_of(text)


def test_faults_are_read_from_one_text() -> None:
    first, second, third = faults_of("drop:2, slow:stop=0.5,raise:start")
    assert (first.kind, first.number) == ("drop", 2)
    assert (second.kind, second.hook, second.number) == ("slow", "stop", 0.5)
    assert (third.kind, third.hook) == ("raise", "start")
    assert faults_of("") == ()


# -- the plugin of the environment -----------------------------------------------------------------------------------------

PROGRAM = """
import devprof
with devprof.profile(activities=["cpu", "replay"], host="python") as prof:
    with devprof.record_function("mine"):
        pass
print(prof.report)
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    environment = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def installed() -> bool:
    from importlib.metadata import entry_points

    return any(entry.value == "devprof.replay.plugin" for entry in entry_points(group="devprof.plugins"))


@pytest.mark.skipif(not installed(), reason="devprof was installed before it had this entry point")
def test_the_environment_names_a_recording_and_faults(tmp_path: Path) -> None:
    save(recording_of(), tmp_path / "npu.devrec")
    done = run(tmp_path, DEVPROF_REPLAY="npu.devrec")
    assert "replay: produced 7 = emitted 4 + dropped 3" in done.stdout, done.stderr
    done = run(tmp_path, DEVPROF_REPLAY="npu.devrec", DEVPROF_REPLAY_FAULTS="missing-flush")
    assert "replay: produced 6 = emitted 3 + dropped 3" in done.stdout, done.stderr
    done = run(tmp_path, DEVPROF_REPLAY="nowhere.devrec")
    assert "DEVPROF_REPLAY names nowhere.devrec, and there is no such file" in done.stderr
    done = run(tmp_path)
    assert "no plugin records 'replay'" in done.stderr


def test_times_in_a_recording_begin_at_a_second_of_their_own_axis() -> None:
    assert recording_of().sessions[0].hooks[0].start_ns == AXIS_NS


def test_a_replay_within_the_programs_own_ranges_is_linked_by_their_order() -> None:
    recording = with_host(recording_of(), "outer", "inner")
    with registered(recording):
        prof = profile(activities=["cpu", "again"], host="python")
        with prof, record_function("first"), RecordFunction("second"):
            pass
    assert owners(prof) == {"kernel 1": "first", "kernel 2": "second"}
