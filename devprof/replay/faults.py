"""Faults to inject into a replay: what backends do wrong, on request.

Each is a word, some with a number: ``drop:3`` loses every third record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType

__all__ = ["FAULTS", "Fault", "Faults", "faults_of"]

_WORK = [int(kind) for kind in ActivityType if kind.is_device_work]
_SEED = 20_111


@dataclass(frozen=True, slots=True)
class _Kind:
    """A fault that can be asked for: what it does, in words, and its number, if it takes one; None: it takes none."""

    what: str
    usual: float | None = None
    takes_hook: bool = False


FAULTS = MappingProxyType(
    {
        "reorder": _Kind("records and buffers come in another order (harmless: devprof takes any order)"),
        "late-flush": _Kind("a session's records come with the next session's"),
        "missing-flush": _Kind("the second half of a session's device records never comes, and nothing says so"),
        "drop": _Kind("every N-th device record is lost, and nothing says so", 3),
        "drop-told": _Kind("every N-th device record is lost, and the session says how many", 3),
        "duplicate": _Kind("every N-th device record comes twice", 3),
        "wrong-ids": _Kind("records carry the launch number in place of the op id"),
        "no-ids": _Kind("records carry no op id"),
        "launch-ids": _Kind("device work carries another number than its launch"),
        "clock-offset": _Kind("device records are N milliseconds late", 50),
        "clock-drift": _Kind("device records drift by N parts per million", 20_000),
        "clock-step": _Kind("the device's clock jumps by N milliseconds while it records", 50),
        "slow": _Kind("the method HOOK takes N seconds longer: slow:HOOK=N", 1, takes_hook=True),
        "raise": _Kind("the method HOOK raises: raise:HOOK", 0, takes_hook=True),
    }
)
"""Every fault, by the word that asks for it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        kind: a key of `FAULTS`.
        number: how much, as `FAULTS` says.
        hook: the method that it is about, for ``slow`` and ``raise``.
    """

    kind: str
    number: float = 0
    hook: str = ""

    @classmethod
    def of(cls, text: str) -> Fault:
        """Read a fault, such as ``"drop:3"`` or ``"slow:stop=2"``.

        Raises:
            UsageError: there is no such fault, or its number is none.
        """
        word, _, rest = text.strip().partition(":")
        kind = FAULTS.get(word)
        if kind is None:
            raise UsageError(f"there is no fault {word!r}; expected one of {', '.join(FAULTS)}")
        hook, _, number = rest.partition("=") if kind.takes_hook else ("", "", rest)
        if kind.takes_hook and not hook:
            raise UsageError(f"fault {word!r} needs the name of a method: {word}:stop")
        if kind.usual is None and rest:
            raise UsageError(f"fault {word!r} takes no number, found {rest!r}")
        try:
            value = float(number) if number else float(kind.usual or 0)
        except ValueError:
            value = float("nan")
        if not 0 <= abs(value) < 1e9 or (word in ("drop", "drop-told", "duplicate") and value < 1):
            raise UsageError(f"fault {word!r}: {number!r} is no number that it can have")
        return cls(word, value, hook)


def faults_of(texts: str | Iterable[str | Fault]) -> tuple[Fault, ...]:
    """Return faults from a text with commas, or from several such texts.

    Raises:
        UsageError: one of them is unknown.
    """
    found: list[Fault] = []
    for one in [texts] if isinstance(texts, str) else texts:
        found += [one] if isinstance(one, Fault) else [Fault.of(word) for word in one.split(",") if word.strip()]
    return tuple(found)


T = TypeVar("T")


class Faults:
    """The faults of one replay, put into effect. They are the same in every run."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        """Take faults; of one kind the last counts, `slow` and `raise` count per method."""
        self._by_kind = {(one.kind, one.hook): one for one in faults}

    def number(self, kind: str, hook: str = "") -> float | None:
        """Return how much of a fault there is, None: there is none."""
        found = self._by_kind.get((kind, hook))
        return None if found is None else found.number

    def spoil(
        self, batches: list[ActivityBatch], started: Callable[[ActivityBatch], float], ticks_per_ns: float
    ) -> tuple[list[ActivityBatch], int]:
        """Return what is delivered in place of the records, and how many the session says it lost.

        Args:
            batches: as recorded.
            started: gives the start of the session on the clock of a batch.
            ticks_per_ns: rate of the session's clock.
        """
        batches, told = self._lose(batches)
        batches = [self._misname(batch) for batch in batches]
        batches = [self._misplace(batch, started(batch), ticks_per_ns) for batch in batches]
        if (n := self.number("duplicate")) is not None:
            batches += [twice for batch in batches if len(twice := _every(batch, n, _is_work(batch)))]
        if self.number("reorder") is not None:
            random = np.random.default_rng(_SEED)
            batches = [batch.take(random.permutation(len(batch))) for batch in reversed(batches)]
        return batches, told

    def _lose(self, batches: list[ActivityBatch]) -> tuple[list[ActivityBatch], int]:
        told = 0
        if self.number("missing-flush") is not None:
            n_work = sum(int(_is_work(batch).sum()) for batch in batches)
            batches = _without(batches, lambda number: number >= n_work - n_work // 2)
        for kind in ("drop", "drop-told"):
            if (n := self.number(kind)) is not None:
                before = sum(map(len, batches))
                batches = _without(batches, lambda number, n=n: (number + 1) % int(n) == 0)  # type: ignore[misc]
                told += before - sum(map(len, batches)) if kind == "drop-told" else 0
        return [batch for batch in batches if len(batch)], told

    def _misname(self, batch: ActivityBatch) -> ActivityBatch:
        if self.number("wrong-ids") is not None:
            batch = replace(batch, linked=batch.id)
        if self.number("no-ids") is not None:
            batch = replace(batch, linked=np.zeros_like(batch.linked), linked_user=np.zeros_like(batch.linked_user))
        if self.number("launch-ids") is not None:
            batch = replace(batch, id=np.where(_is_work(batch), batch.id + 2**20, batch.id))
        return batch

    def _misplace(self, batch: ActivityBatch, started: float, ticks_per_ns: float) -> ActivityBatch:
        off = np.zeros(len(batch))
        if (offset_ms := self.number("clock-offset")) is not None:
            off += offset_ms * 1e6 * ticks_per_ns
        if (ppm := self.number("clock-drift")) is not None:
            off += np.maximum(batch.start - started, 0) * ppm / 1e6
        off = np.where(_is_work(batch), np.rint(off), 0)
        return batch.with_times(batch.start + off.astype(np.int64), batch.end + off.astype(np.int64), clock=batch.clock)


def _is_work(batch: ActivityBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(batch.activity_type, _WORK)


def _without(batches: list[ActivityBatch], lost: Callable[[int], bool]) -> list[ActivityBatch]:
    """Leave out device records by their number within the session."""
    number = 0
    found = []
    for batch in batches:
        keep = np.ones(len(batch), np.bool_)
        for row in np.flatnonzero(_is_work(batch)).tolist():
            keep[row] = not lost(number)
            number += 1
        found.append(batch.take(keep))
    return found


def _every(batch: ActivityBatch, n: float, among: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> ActivityBatch:
    return batch.take(np.flatnonzero(among)[:: int(n)])
