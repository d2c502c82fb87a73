"""Many threads, many sessions, errors of the device, and what an op costs."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter
from contextlib import suppress

from devprof.host import RecordFunction
from devprof.profiler import profile
from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.table import DIRECT, PYTHON_ONLY, Undecided, check, expect

__all__: list[str] = []

_THREADS = 8
_SLACK = 2


@check(
    "C901",
    hosts=PYTHON_ONLY,
    needs=("workload", "kernels"),
    cause="Records are kept per thread and only some threads' are collected, or a list is changed by two threads at "
    "once.",
)
def many_threads_lose_nothing(bench: Bench) -> None:
    """Kernels that many threads launch at once are all delivered.

    Eight threads launch 25 kernels each, and end before the session does.
    """
    go = threading.Barrier(_THREADS)

    def work() -> None:
        go.wait(30)
        for _ in range(25):
            bench.launch(1)

    def body(capture: Capture) -> None:
        threads = [threading.Thread(target=work) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bench.device.synchronize()

    bench.work(3).delivered(3)
    seen = bench.session(body).seen
    found = len(seen.kernels) + sum(count or 0 for count, _ in seen.dropped)
    expect(found == 25 * _THREADS, expected=f"{25 * _THREADS} kernels", found=found)


@check(
    "C902",
    hosts=DIRECT,
    needs=("workload", "kernels", "failure"),
    cause="An error of the device is swallowed, leaves the session through `stop`, or sticks to the next session. Catch"
    " it, keep the records, and say it in `errors()`.",
)
def device_errors_are_told_and_end(bench: Bench) -> None:
    """An error of the device costs no records, and does not reach the next session.

    Launches two kernels, lets the next call fail, stops; then runs another session.
    """
    bench.work(2).delivered(2)
    session = bench.direct()
    session.start()
    session.launch(2)
    bench.device.call("fail")
    for call in (bench.device.launch, bench.device.synchronize):
        with suppress(Exception):
            call()
    found = len(session.finish().kernels)
    expect(found >= 2, expected="the 2 kernels before the error", found=f"{found} kernels")
    after = bench.direct()
    after.start()
    after.launch(3)
    seen = after.finish()
    errors = list(seen.said.get("errors") or ())
    expect(len(seen.kernels) == 3, expected="3 kernels in the next session", found=len(seen.kernels))
    expect(not errors, expected="no error in the next session", found=errors)


def _session(bench: Bench) -> object:
    """Run one session with one kernel; return the reference to the plugin's object, if there can be one."""
    session = bench.direct(inline=True)
    session.start()
    session.launch(1)
    return session.finish().session


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0  # noqa: PTH112, PTH208 - counted only


@check(
    "C903",
    hosts=DIRECT,
    needs=("workload",),
    cause="The profiler keeps its sessions or their records, in a list, a callback that was never taken back, or a "
    "reference cycle of an object that cannot be collected.",
)
def sessions_are_let_go(bench: Bench) -> None:
    """Sessions that have ended take no memory.

    Runs a thousand sessions and looks how many of their objects are still alive, and how many objects there are more.
    """
    for _ in range(10):
        _session(bench)
    gc.collect()
    threads, before = threading.active_count(), len(gc.get_objects())
    alive = [reference for _ in range(bench.settings.sessions) if (reference := _session(bench)) is not None]
    gc.collect()
    kept = sum(reference() is not None for reference in alive)  # type: ignore[operator]  # weak references
    del alive
    more = len(gc.get_objects()) - before
    n = bench.settings.sessions
    if threading.active_count() > threads + _SLACK:
        raise Undecided("C904", "threads are left, with what belongs to them")
    expect(kept <= _SLACK, expected="no session that is kept", found=f"{kept} of {n}")
    expect(more < n / 2 + 50, expected="no more objects than before", found=f"{more} more after {n} sessions")


@check(
    "C904",
    hosts=DIRECT,
    needs=("workload",),
    cause="`start` begins a thread or opens a file that `stop` does not end.",
)
def sessions_leave_no_threads_and_files(bench: Bench) -> None:
    """Sessions that have ended leave no thread and no open file.

    Runs sessions in a row and counts threads and open files.
    """
    _session(bench)
    gc.collect()
    before = Counter(thread.name for thread in threading.enumerate()), _descriptors()
    for _ in range(max(20, bench.settings.sessions // 10)):
        _session(bench)
    gc.collect()
    threads = Counter(thread.name for thread in threading.enumerate()) - before[0]
    files = _descriptors() - before[1]
    expect(threads.total() <= _SLACK, expected="no more threads", found=f"{threads.total()} more: {dict(threads)}")
    expect(files <= _SLACK, expected="no more open files", found=f"{files} more")


def _ns_per_op(n: int, host: str, activities: list[str]) -> float:
    with profile(activities=activities, host=host):
        began = time.perf_counter_ns()
        for _ in range(n):
            with RecordFunction("op"):
                pass
        return (time.perf_counter_ns() - began) / n


@check(
    "C905",
    cause="A hook that runs per op does too much, waits, or takes a lock that others hold. Use "
    "`CorrelationAccess.READ`: it costs nothing per op.",
)
def an_op_costs_little_more(bench: Bench) -> None:
    """An op without device work costs little more with the plugin than without.

    Times empty ops with and without the plugin, the best of five each; the ratio may be large, so that only a mistake is found.
    """
    n = bench.settings.ops
    name, host = bench.plugin.name, bench.host
    bench.session(lambda capture: None)
    without = min(_ns_per_op(n, host, ["cpu"]) for _ in range(5))
    beside = min(_ns_per_op(n, host, ["cpu", name]) for _ in range(5))
    most = bench.settings.cost_ratio
    expect(
        beside <= most * without,
        expected=f"at most {most:g} times the {without:.0f} ns without it",
        found=f"{beside:.0f} ns, {beside / without:.0f} times as much",
    )
