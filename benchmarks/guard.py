"""What it costs that a hook cannot harm the program: per call behind the guard, and per lifecycle hook on its own thread.

The peers are the least that anybody must do: ``try ... except`` around the same call, and a thread that is started and joined.
Guarded and bare calls alternate; the median of the rounds counts.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable

from benchmarks.setting import Gate, cpu_us
from devprof.capture import PhaseRunner
from devprof.registry import SESSION_RETURNS, Guard

__all__ = ["gates"]

ROUNDS, CALLS, PHASES = 31, 20_000, 50


class Session:
    """A plugin's session with the least that there can be in its hooks."""

    def push_correlation_id(self, id: int) -> None:
        """Do nothing."""

    def errors(self) -> list[str]:
        """Return no errors."""
        return []


def _per_call_ns(call: Callable[[], object], n: int) -> float:
    def work() -> None:
        for _ in range(n):
            call()

    return 1000 * cpu_us(work) / n


def _medians(bare: Callable[[], object], ours: Callable[[], object], n: int) -> tuple[float, float]:
    took: tuple[list[float], list[float]] = ([], [])
    for round_number in range(ROUNDS + 1):
        for which in (0, 1) if round_number % 2 else (1, 0):
            spent = _per_call_ns((bare, ours)[which], n)
            if round_number:  # the first round warms up
                took[which].append(spent)
    return statistics.median(took[0]), statistics.median(took[1])


def _caught(hook: Callable[..., object], *args: object) -> object:
    try:
        return hook(*args)
    except BaseException:  # noqa: BLE001 - what the guard catches, too
        return None


def gates() -> list[Gate]:
    """Measure a push, a hook whose answer is read, and a phase."""
    guard, session, runner = Guard("demo"), Session(), PhaseRunner()
    push, errors = session.push_correlation_id, session.errors
    pushes = _medians(
        lambda: _caught(push, 1),
        lambda: guard.call("session.push_correlation_id", push, 1, expect=SESSION_RETURNS["push_correlation_id"]),
        CALLS,
    )
    answers = _medians(
        lambda: _caught(errors),
        lambda: guard.call("session.errors", errors, expect=SESSION_RETURNS["errors"]),
        CALLS,
    )

    def bare_thread() -> None:
        thread = threading.Thread(target=errors, daemon=True)
        thread.start()
        thread.join()

    threads = _medians(bare_thread, lambda: runner.run("demo", errors), PHASES)
    return [
        _gate("guard: a push", pushes, 1000),
        _gate("guard: a hook whose answer is checked", answers, 2000),
        Gate(
            "guard: a lifecycle hook on its own thread / a thread",
            threads[1] / threads[0],
            2,
            detail=f"{threads[1] / 1000:.0f} / {threads[0] / 1000:.0f} us",
        ),
    ]


def _gate(name: str, took: tuple[float, float], bound_ns: float) -> Gate:
    return Gate(f"{name}, over try and except", took[1] - took[0], bound_ns, "ns", f"{took[1]:.0f} / {took[0]:.0f} ns")
