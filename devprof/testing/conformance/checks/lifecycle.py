"""The order in which a session's hooks are called, as it is and as it may be."""

from __future__ import annotations

from typing import Any

from devprof.model import ActivityType
from devprof.profiler import schedule
from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.direct import DirectSession
from devprof.testing.conformance.table import DIRECT, CheckFailed, Undecided, check, expect

__all__: list[str] = []

_ONCE = ("start", "stop", "process_trace")


@check(
    "C106",
    needs=("workload",),
    cause="A hook raised or returned a wrong type: the sentence names both. The plugin is then set aside for the "
    "session, with one warning.",
)
def plain_session_runs_through(bench: Bench) -> None:
    """A plain session goes through every hook without a failure.

    Profiles one op with one kernel, and looks at the calls and at what devprof says of the plugin.
    """

    def body(capture: Capture) -> None:
        bench.launch()
        bench.device.synchronize()

    capture = bench.session(body, judged=False)
    failures = capture.ledger.failures
    expect(not failures, expected="no failure", found="; ".join(failures))
    expect(
        bool(capture.watched),
        expected="a session from configure()",
        found="None: the plugin sat out",
        cause="`configure` returned None. Return a session whenever a kind is asked for that the plugin records.",
    )
    found = [call for call in capture.seen.calls if call in _ONCE]
    expect(found == list(_ONCE), expected=list(_ONCE), found=found)


@check(
    "C107",
    needs=("workload", "kernels"),
    cause="Every cycle of a schedule is a session of its own, configured at the end of `wait`. State that belongs to a "
    "session is kept in the profiler, or `configure` returns the same object twice.",
)
def scheduled_sessions_are_complete(bench: Bench) -> None:
    """Under a schedule every cycle has exactly the kernels of its active steps.

    Profiles eight steps with `schedule(wait=1, warmup=1, active=2, repeat=2)`, one kernel per step, and counts the kernels of
    each cycle.
    """
    counts: list[int] = []

    def ready(prof: Any) -> None:
        counts.append(len(prof.trace.of_type(ActivityType.CONCURRENT_KERNEL)))

    def body(capture: Capture) -> None:
        for _ in range(8):
            bench.launch()
            bench.device.synchronize()
            capture.prof.step()

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    bench.work(1).kernels(1)
    capture = bench.session(body, judged=False, schedule=plan, on_trace_ready=ready)
    sessions = [[call for call in one.calls if call in _ONCE] for one in capture.watched]
    expect(sessions == [list(_ONCE)] * 2, expected=[list(_ONCE)] * 2, found=sessions)
    expect(counts == [2, 2], expected="2 kernels in each of 2 cycles", found=counts)


def _still_records(bench: Bench, after: str) -> None:
    """Let a fresh session record one kernel."""
    try:
        session = bench.direct()
        session.start()
        session.launch(1)
        found = len(session.finish().kernels)
    except CheckFailed as failed:
        raise CheckFailed(f"a session that records {after}", failed.found, failed.cause) from None
    expect(found == 1, expected=f"a session that records 1 kernel {after}", found=f"{found} kernels")


def _basis(bench: Bench) -> None:
    """Make sure that a plain session records, else there is nothing to compare with."""
    bench.work(1).delivered(1)


@check(
    "C108",
    hosts=DIRECT,
    needs=("workload", "kernels"),
    cause="`configure` takes something that only `stop` gives back, such as the vendor's one subscription. Take it in "
    "`start`, or give it back when the session object goes.",
)
def session_may_be_dropped_after_configure(bench: Bench) -> None:
    """A session that is configured and then dropped leaves nothing behind.

    Configures a session, drops it, and lets another one record a kernel.
    """
    _basis(bench)
    bench.direct()
    _still_records(bench, "after one that was configured and dropped")


@check(
    "C109",
    hosts=DIRECT,
    needs=("workload", "kernels"),
    cause="`stop` undoes what `start` did without looking whether it was called. A profile that is cancelled in warm-up"
    " stops a session that never started.",
)
def stop_may_come_without_start(bench: Bench) -> None:
    """`stop` on a session that never started does nothing.

    Configures a session, stops it, and lets another one record a kernel.
    """
    _basis(bench)
    bench.direct().stop()
    _still_records(bench, "after a stop without a start")


@check(
    "C110",
    hosts=DIRECT,
    needs=("workload", "kernels"),
    cause="The second `stop` flushes or clears again. Remember that the session has stopped, and return.",
)
def stop_may_come_twice(bench: Bench) -> None:
    """A second `stop` changes nothing.

    Records three kernels, stops twice, and counts what is delivered.
    """
    _basis(bench)
    session = bench.direct()
    session.start()
    session.launch(3)
    session.stop()
    found = len(session.finish().kernels)
    expect(found == 3, expected="3 kernels", found=found)
    _still_records(bench, "after a session that was stopped twice")


@check(
    "C111",
    hosts=DIRECT,
    needs=("workload", "kernels"),
    cause="Recording goes on between sessions, or records are kept until the next one: `start` must begin with empty "
    "buffers, and after `stop` nothing may be recorded.",
)
def sessions_are_independent(bench: Bench) -> None:
    """A session delivers its own work and nothing from before it.

    Records two kernels, launches three more with no session on and waits for them, records four, and counts what the second
    session delivers.
    """
    _basis(bench)
    first = bench.direct()
    first.start()
    first.launch(2)
    _expect_count(first, 2)
    bench.device.launch(3)
    bench.device.synchronize()  # what still runs when a session starts is nobody's mistake
    second = bench.direct()
    second.start()
    second.launch(4)
    found = len(second.finish().kernels)
    expect(found == 4, expected="the 4 kernels of the second session", found=f"{found} kernels")


def _expect_count(session: DirectSession, n: int) -> None:
    if len(session.finish().kernels) != n:
        raise Undecided("C401", f"a first session did not deliver its {n} kernels")
