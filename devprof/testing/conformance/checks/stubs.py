"""Stubs for torch's legacy profiler, called as torch calls them."""

from __future__ import annotations

import time

from devprof.contract import ProfilerStubs
from devprof.testing.conformance.bench import Bench
from devprof.testing.conformance.table import DIRECT, CheckFailed, check, expect

__all__: list[str] = []

_PAUSE_S = 0.02


def _stubs(bench: Bench) -> ProfilerStubs:
    stubs = bench.subject.stubs
    if stubs is None:
        raise AssertionError("the table of needs asks for stubs")
    return stubs


@check(
    "C801",
    hosts=DIRECT,
    needs=("stubs", "workload"),
    cause="`elapsed` returns milliseconds or nanoseconds. Vendors' event APIs mostly give milliseconds; torch wants "
    "microseconds.",
)
def elapsed_is_in_microseconds(bench: Bench) -> None:
    """The time between two recorded events is in microseconds.

    Records an event, waits a while, records another one, and compares with the host's time around and between them.
    """
    stubs = _stubs(bench)
    outer_ns = time.perf_counter_ns()
    start = stubs.record()
    bench.device.synchronize()
    inner_ns = time.perf_counter_ns()
    time.sleep(_PAUSE_S)
    inner_us = (time.perf_counter_ns() - inner_ns) / 1e3
    end = stubs.record()
    bench.device.synchronize()
    found_us = stubs.elapsed(start, end)
    outer_us = (time.perf_counter_ns() - outer_ns) / 1e3
    expect(
        0.5 * inner_us <= found_us <= 1.5 * outer_us,
        expected=f"{inner_us:.0f} to {outer_us:.0f} us",
        found=f"{found_us:g}",
    )


@check(
    "C802",
    hosts=DIRECT,
    needs=("stubs", "workload"),
    cause="Only the current device is visited, or one twice. torch records a start event on every device that is "
    "visited.",
)
def every_device_is_visited_once(bench: Bench) -> None:
    """`on_each_device` visits every device once.

    Collects the numbers that it calls back with.
    """
    visited: list[int] = []
    _stubs(bench).on_each_device(visited.append)
    n = int(bench.device.fact("devices", 1))
    expect(
        len(set(visited)) == len(visited) >= n and set(range(n)) <= set(visited),
        expected=f"devices from 0, at least {n}, once each",
        found=visited,
    )


@check(
    "C803",
    hosts=DIRECT,
    needs=("stubs",),
    cause="A method of the table is left to raise NotImplementedError, or `range_pop` takes from an empty stack.",
)
def marks_and_ranges_do_not_raise(bench: Bench) -> None:
    """Marks, ranges and waiting work, also a pop without a push.

    Calls each method of the stubs that returns nothing.
    """
    stubs = _stubs(bench)
    calls = (
        ("enabled", lambda: stubs.enabled()),
        ("mark", lambda: stubs.mark("conformance")),
        ("range_push", lambda: stubs.range_push("conformance")),
        ("range_pop", lambda: stubs.range_pop()),
        ("range_pop without a push", lambda: stubs.range_pop()),
        ("synchronize", lambda: stubs.synchronize()),
    )
    for name, call in calls:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises
            raise CheckFailed(f"{name} to return", f"it raised {error!r}") from None
    expect(stubs.enabled() is True, expected="True from enabled()", found=stubs.enabled())
