"""What became of every record."""

from __future__ import annotations

from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.table import DIRECT, check, expect
from devprof.testing.conformance.watching import Watched

__all__: list[str] = []

_OF_OTHER_CHECKS = ("no timestamp", "negative duration", "activity type not requested", "delivered twice")


def _told(seen: Watched) -> int:
    return sum(count or 0 for count, _ in seen.dropped)


def _expect_account(seen: Watched, n: int, *, once: bool = False) -> None:
    """Expect n kernels, delivered or said to be lost; `once`: and no more than these. An unknown loss may be any."""
    unknown = any(count is None for count, _ in seen.dropped)
    found = len(seen.kernels) + _told(seen)
    expect(
        (unknown or found >= n) and not (once and found > n),
        expected=f"{n} kernels, delivered {'once ' if once else ''}or said to be lost",
        found=f"{len(seen.kernels)} delivered and {_told(seen)} said to be lost",
    )


@check(
    "C601",
    needs=("workload", "kernels"),
    cause="A buffer of fixed size is overwritten in silence. Count what is lost and tell it with "
    "`logger.handle_dropped`; None where the vendor cannot say how many.",
)
def nothing_is_lost_unsaid(bench: Bench) -> None:
    """Under many launches, what is delivered and what is said to be lost make up what was launched.

    Launches thousands of kernels in one session.
    """
    n = bench.settings.kernels

    def body(capture: Capture) -> None:
        for _ in range(n // 100):
            bench.launch(100)
        bench.device.synchronize()

    bench.work(3).delivered(3)
    _expect_account(bench.session(body, judged=False).seen, n)


@check(
    "C602",
    needs=("workload", "kernels"),
    cause="A record has a value that no trace can hold: the reason names it.",
)
def nothing_is_rejected(bench: Bench) -> None:
    """None of the plugin's records is rejected.

    Launches kernels and reads the account. Reasons that other checks are about are left to them.
    """
    capture = bench.work(3)
    malformed = capture.seen.malformed
    found = {reason: n for reason, n in capture.ledger.rejected.items() if reason not in _OF_OTHER_CHECKS}
    expect(not found and not malformed, expected="no rejected record", found=found or malformed)


@check(
    "C603",
    hosts=DIRECT,
    needs=("workload", "kernels", "loss"),
    cause="The vendor's counter of dropped records is not asked, or an error of that call is taken for 0. Tell what it "
    "says with `logger.handle_dropped`.",
)
def loss_is_told(bench: Bench) -> None:
    """Records that the device loses are said to be lost.

    Lets the device lose the records of two of five kernels.
    """
    _before(bench)
    _expect_account(_losing_some(bench), 5)


@check(
    "C604",
    hosts=DIRECT,
    needs=("workload", "kernels", "loss"),
    cause="The counter of the vendor's library is not reset, so each session tells the losses of all before it. Take "
    "the count at `start` and tell the difference.",
)
def loss_is_told_once(bench: Bench) -> None:
    """A session does not tell the losses of an earlier one.

    Lets the device lose records in one session, and none in the next.
    """
    _before(bench)
    _losing_some(bench)
    seen = _losing(bench, 0, 5)
    expect(_told(seen) == 0, expected="no loss in the second session", found=f"{_told(seen)} said to be lost")


@check(
    "C605",
    hosts=DIRECT,
    needs=("workload", "kernels", "flush"),
    cause="Too many: `flush_trace` hands over what it keeps. Too few: it forgets what was still running, or ends the "
    "recording. Hand over what is complete and forget just that; the rest comes with a later call or with `process_trace`.",
)
def flushes_and_the_end_make_up_the_whole(bench: Bench) -> None:
    """What is handed over while recording and what comes at the end make up what was launched, each record once.

    Launches three kernels, waits for them and flushes, flushes while two more are under way, launches another and stops.
    """
    _before(bench)
    session = bench.direct()
    session.start()
    session.launch(3)
    bench.device.synchronize()
    session.flush()
    session.launch(2)
    session.flush()
    session.launch(1)
    _expect_account(session.finish(), 6, once=True)


def _before(bench: Bench) -> None:
    bench.work(3).delivered(3)


def _losing_some(bench: Bench) -> Watched:
    """Lose two of five; where all come, and nothing is said, there was nothing to tell."""
    seen = _losing(bench, 2, 5)
    bench.need(
        "a workload that loses something: all 5 kernels came after lose(2)", len(seen.kernels) < 5 or bool(seen.dropped)
    )
    return seen


def _losing(bench: Bench, lost: int, n: int) -> Watched:
    session = bench.direct()
    session.start()
    if lost:
        bench.device.call("lose", lost)
    session.launch(n)
    return session.finish()
