"""When things happened."""

from __future__ import annotations

import time

from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.table import Undecided, check, expect

__all__: list[str] = []

_TOLERANCE_NS = 1_000_000
"""What a kernel may seem to stick out of the call that launched it and waited for it, beside the clock's own uncertainty."""

_IN_WINDOW = ("before window", "after window", "launched outside window")
_OVERLAPS = ("work that runs into the next on its row", "work that crosses another on its row")


@check(
    "C501",
    needs=("workload", "kernels"),
    cause="The times are not Unix ns: microseconds, ticks or a monotonic clock. Hand over Unix ns, or return a "
    "`ClockDomain` from `clock_domain()` and let devprof convert.",
)
def work_is_inside_the_window(bench: Bench) -> None:
    """Work that is launched and done in a session is inside its window.

    Launches kernels, waits for them, and looks for records that devprof left out because of their times.
    """
    capture = bench.work(3)
    capture.delivered(3)
    found = {reason: capture.ledger.dropped[reason] for reason in _IN_WINDOW if capture.ledger.dropped[reason]}
    expect(not found, expected="no record outside of the window", found=found)


@check(
    "C502",
    needs=("workload", "kernels"),
    cause="The end is missing or before the start: the record was taken before the work had ended, or the vendor marks "
    "'not collected' with 0. Wait in `stop`; hand over no record without times.",
)
def kernels_have_a_start_and_an_end(bench: Bench) -> None:
    """Every kernel has a start, and an end after it.

    Launches kernels and looks at the times as delivered.
    """
    kernels = bench.work(3).delivered(3).kernels
    bad = [(one.start_ns, one.end_ns) for one in kernels if one.start_ns <= 0 or one.end_ns <= one.start_ns]
    expect(not bad, expected="start and end of 3 kernels", found=f"{len(bad)} without, the first is {bad[:1]}")


@check(
    "C503",
    needs=("workload", "kernels", "runtime calls", "real clock"),
    cause="Host calls and device work are on clocks that do not agree, or the device's start is that of the record "
    "before. Return a `ClockDomain` for the device's ticks, and hand host calls over as a batch on 'unix_ns'.",
)
def kernels_start_after_their_launch(bench: Bench) -> None:
    """No kernel starts before the call that launched it.

    Launches kernels one by one, with a pause between; devprof notes those that start earlier by more than the clocks may be
    off.
    """

    def body(capture: Capture) -> None:
        for _ in range(4):
            bench.launch(1)
            bench.device.synchronize()
            time.sleep(0.001)

    capture = bench.session(body)
    capture.kernels(4)
    found = capture.ledger.notes["device work before its launch"]
    expect(found == 0, expected="no kernel before its launch", found=f"{found} of 4")


@check(
    "C504",
    needs=("workload", "kernels", "serial streams"),
    cause="The end of a kernel is when the host heard of it, or all streams share one number. If the device does run "
    "work on one stream side by side, say so: `serial_streams = False` on the workload.",
)
def a_stream_does_one_thing_at_a_time(bench: Bench) -> None:
    """Work on one stream does not overlap.

    Launches kernels in quick succession on one stream; devprof notes those that run into the next.
    """
    capture = bench.work(8)
    capture.kernels(8)
    found = {text: capture.ledger.notes[text] for text in _OVERLAPS if capture.ledger.notes[text]}
    expect(not found, expected="8 kernels one after the other", found=found)


def _stick_out_ns(bench: Bench, capture: Capture) -> list[tuple[int, int]]:
    """Launch one kernel and wait for it; return the host's times around that."""
    now_ns = capture.seen.config.now_ns
    before_ns = now_ns()
    bench.launch(1)
    bench.device.synchronize()
    return [(before_ns, now_ns())]


def _compare(capture: Capture, brackets: list[tuple[int, int]]) -> list[int]:
    """Return how far each kernel sticks out of its bracket, ns; 0: not at all."""
    trace, allowed_ns = capture.trace, capture.uncertainty_ns + _TOLERANCE_NS
    found = []
    for event, (before_ns, after_ns) in zip(capture.kernels(len(brackets)), brackets, strict=True):
        out_ns = max(before_ns - int(trace.start_ns[event]), int(trace.end_ns[event]) - after_ns, 0)
        found.append(out_ns if out_ns > allowed_ns else 0)
    return found


@check(
    "C505",
    needs=("workload", "kernels", "real clock"),
    cause="The device's clock is off against the host's by a constant: an offset that was measured once and is not "
    "valid any more, or local time in place of UTC. Return a `ClockDomain` and let devprof measure.",
)
def device_time_agrees_with_the_hosts(bench: Bench) -> None:
    """A kernel that the host launched and waited for ran meanwhile.

    Takes the host's time, launches a kernel, waits for it, takes the time again, and looks whether the kernel is in between,
    give or take a millisecond and what devprof says the clock may be off.
    """
    brackets: list[tuple[int, int]] = []

    def body(capture: Capture) -> None:
        brackets.extend(_stick_out_ns(bench, capture))

    capture = bench.session(body)
    found = _compare(capture, brackets)
    expect(not any(found), expected="a kernel inside its call", found=f"it sticks out by {found[0] / 1e6:.3f} ms")


@check(
    "C506",
    needs=("workload", "kernels", "real clock"),
    cause="The rate of the device's clock is taken as stated. Clocks drift: return a `ClockDomain` with the nominal "
    "rate, and devprof measures the true one over the session.",
)
def device_time_does_not_drift(bench: Bench) -> None:
    """Device time still agrees with the host's after seconds.

    As C505, at the start and at the end of a session of two seconds.
    """
    brackets: list[tuple[int, int]] = []

    def body(capture: Capture) -> None:
        brackets.extend(_stick_out_ns(bench, capture))
        time.sleep(bench.settings.drift_s)
        brackets.extend(_stick_out_ns(bench, capture))

    capture = bench.session(body)
    first, last = _compare(capture, brackets)
    if first:
        raise Undecided("C505", "the clocks do not even agree at the start")
    expect(not last, expected="a kernel inside its call, at the end too", found=f"it sticks out by {last / 1e6:.3f} ms")


@check(
    "C507",
    needs=("workload", "kernels", "real clock"),
    cause="`ticks_per_second` is wrong, or `sample_clock()` reads another clock than the records carry, waits, or is "
    "coarse.",
)
def clock_is_sound(bench: Bench) -> None:
    """The fit of the plugin's clock leaves no doubt.

    Profiles a kernel, waits a little, and reads what the fit of the clock says. Skipped where the plugin hands over Unix ns.
    """

    def body(capture: Capture) -> None:
        bench.launch(1)
        bench.device.synchronize()
        time.sleep(bench.settings.drift_s / 10)

    capture = bench.session(body)
    bench.need("a session with clock_domain()", capture.seen.said.get("clock_domain") is not None)
    if capture.ledger.dropped:
        raise Undecided("C501", "records are outside of the window")
    doubts = [*capture.ledger.clock_doubts, *capture.ledger.errors]
    expect(not doubts, expected="no doubt", found="; ".join(doubts))
