"""Faults on demand: what a real device, driver or profiling library does on a bad day.

A rule is a frozen value; give it to `Runtime.inject`. Rules apply from then on, until `Runtime.clear_faults`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openreg_sim.runtime.clocks import DeviceClock
from openreg_sim.runtime.errors import ErrorCode, OpenRegError
from openreg_sim.runtime.records import ActivityKind, Call

__all__ = [
    "ClockStep",
    "DropRecords",
    "DuplicateRecords",
    "FailCall",
    "FaultPlan",
    "FaultRule",
    "LateFlush",
    "ReorderRecords",
    "SmallBuffers",
]


@dataclass(frozen=True)
class DropRecords:
    """Every `every`-th record is lost.

    Attributes:
        every: 1 loses all.
        kind: of this kind only, or None for any.
        counted: the library knows, and counts it as dropped; else the loss is silent.
    """

    every: int
    kind: ActivityKind | None = None
    counted: bool = True


@dataclass(frozen=True)
class DuplicateRecords:
    """Every `every`-th record comes twice, of kind `kind` or of any."""

    every: int
    kind: ActivityKind | None = None


@dataclass(frozen=True)
class ReorderRecords:
    """The records of a delivery come in a shuffled order; `seed` makes it repeatable."""

    seed: int = 0


@dataclass(frozen=True)
class SmallBuffers:
    """Of each buffer of the client only the first `bytes` are used."""

    bytes: int


@dataclass(frozen=True)
class LateFlush:
    """The next `flushes` flushes hand over nothing; what they owed comes later.

    Attributes:
        flushes: how many.
        forced: forced flushes are late too.
    """

    flushes: int = 1
    forced: bool = False


@dataclass(frozen=True)
class FailCall:
    """The `nth` call from now on fails, once, and does nothing.

    A failing call that came through the native ring has already returned to its caller: its error is raised by the next
    synchronization, as asynchronous errors are.

    Attributes:
        nth: from 1.
        call: count calls of this sort only, or None for all.
        code: the error.
    """

    nth: int
    call: Call | None = None
    code: ErrorCode = ErrorCode.LAUNCH_FAILURE


@dataclass(frozen=True)
class ClockStep:
    """At the `nth` call from now on the device clock jumps by `ticks`, once."""

    nth: int
    ticks: int


FaultRule = DropRecords | DuplicateRecords | ReorderRecords | SmallBuffers | LateFlush | FailCall | ClockStep


@dataclass
class _Active:
    """A rule, and what it has counted."""

    rule: FaultRule
    seen: int = 0


class FaultPlan:
    """The rules that apply now. The runtime calls it under its own lock, the delivery under the delivery's."""

    def __init__(self) -> None:
        self._active: list[_Active] = []
        self._random = random.Random()
        self.on_calls = False

    def inject(self, rules: tuple[FaultRule, ...]) -> None:
        """Apply further rules from now on."""
        for rule in rules:
            if isinstance(rule, ReorderRecords):
                self._random.seed(rule.seed)
            self._active.append(_Active(rule))
        self.on_calls = any(isinstance(a.rule, FailCall | ClockStep) for a in self._active)

    def clear(self) -> None:
        """Apply no rule any more."""
        self._active.clear()
        self.on_calls = False

    def before_call(self, call: Call, host_ns: int, clock: DeviceClock) -> None:
        """Let rules on calls act.

        Raises:
            OpenRegError: the call is to fail.
        """
        for active in list(self._active):
            rule = active.rule
            if isinstance(rule, ClockStep) and self._is_nth(active, rule.nth):
                clock.step(host_ns, rule.ticks)
            if isinstance(rule, FailCall) and rule.call in (None, call) and self._is_nth(active, rule.nth):
                raise OpenRegError(rule.code, call.api_name, "failed by a fault rule")

    def _is_nth(self, active: _Active, nth: int) -> bool:
        active.seen += 1
        if active.seen == nth:
            self._active.remove(active)
            return True
        return False

    def holds_flush(self, *, forced: bool) -> bool:
        """Say whether this flush hands over nothing."""
        for active in list(self._active):
            rule = active.rule
            if isinstance(rule, LateFlush) and active.seen < rule.flushes and (rule.forced or not forced):
                active.seen += 1
                return True
        return False

    def usable_bytes(self, capacity: int) -> int:
        """Return how much of a client's buffer is used."""
        return min([capacity, *(a.rule.bytes for a in list(self._active) if isinstance(a.rule, SmallBuffers))])

    def alter(self, records: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.void], int]:
        """Return the records (n,) as the client shall see them, and how many are to be counted as dropped."""
        dropped = 0
        for active in list(self._active):
            rule = active.rule
            if isinstance(rule, DropRecords):
                hit = _hits(active, records, rule.every, rule.kind)
                records = records[~hit]
                dropped += int(hit.sum()) if rule.counted else 0
            elif isinstance(rule, DuplicateRecords):
                records = np.repeat(records, 1 + _hits(active, records, rule.every, rule.kind))
            elif isinstance(rule, ReorderRecords):
                records = records[self._random.sample(range(len(records)), len(records))]
        return records, dropped


def _hits(
    active: _Active, records: npt.NDArray[np.void], every: int, kind: ActivityKind | None
) -> npt.NDArray[np.bool_]:
    fits = np.ones(len(records), bool) if kind is None else records["kind"] == kind
    number = active.seen + np.cumsum(fits)
    active.seen += int(fits.sum())
    return np.asarray(fits & (number % every == 0))
