"""Stubs for torch's legacy profiler, called as torch calls them."""

from __future__ import annotations

import time

from devprof.contract import ProfilerStubs
from devprof.testing.conformance.bench import Bench
from devprof.testing.conformance.table import DIRECT, ON_TORCH, CheckFailed, check, expect

__all__: list[str] = []

_PAUSE_S = 0.02
_LEGACY_OPS = 16
_ROUNDING = 0.01
_ROUNDING_US = 1.0
"""What a sum of times may be off: devices have events of half a microsecond."""


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


@check(
    "C804",
    hosts=ON_TORCH,
    needs=("stubs", "workload"),
    cause="Events are taken from a small pool and used again before they were read, or `record` keeps one per op. torch "
    "records two per op, at its begin and its end, ops within ops, and asks for the times when all is over.",
)
def legacy_times_of_nested_ops_hold_together(bench: Bench) -> None:
    """In torch's legacy profiler every op has a device time, and an op at least that of the ops in it.

    Profiles 16 ranges with two ranges in each, which launch a kernel, with `torch.autograd.profiler.profile(use_device=...)`.
    """
    from devprof.torch import kit

    device = bench.plugin.capabilities.torch_device or ""
    found = kit.legacy_times(device, lambda: bench.device.launch(1), _LEGACY_OPS)
    bench.device.synchronize()
    expect(len(found) == _LEGACY_OPS, expected=f"{_LEGACY_OPS} ranges", found=len(found))
    wrong = [
        times
        for times in found
        if min(times) <= 0 or times.outer_us < (times.first_us + times.second_us) * (1 - _ROUNDING) - _ROUNDING_US
    ]
    expect(
        not wrong,
        expected="times above 0, and the outer range's at least the sum of the inner ones'",
        found=f"{len(wrong)} of {len(found)} otherwise, the first is {tuple(wrong[0]) if wrong else ''} us",
    )
