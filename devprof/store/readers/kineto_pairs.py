"""Slices that a Chrome trace writes as two events: begin and end of one thread (B, E), of one id (b, e)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Half", "Pairs"]


class Half(NamedTuple):
    """One of the two.

    Attributes:
        phase: B, E, b, e, or n for an instant of an id.
        category, name, pid, tid, id: as the file writes them.
        ns: its time.
        args: its args.
    """

    phase: str
    category: Any
    name: Any
    pid: Any
    tid: Any
    id: Any
    ns: int
    args: Mapping[str, Any]


class Pairs:
    """Collects halves, and makes events of them."""

    def __init__(self) -> None:
        self._open: dict[tuple[Any, ...], list[Half]] = {}
        self._events: list[dict[str, Any]] = []
        self._stray = 0
        self._last_ns = 0

    def add(self, half: Half) -> None:
        """Add one half; those of a thread in the order of the file."""
        self._last_ns = max(self._last_ns, half.ns)
        if half.phase in "Bb":
            self._open.setdefault(_key(half), []).append(half)
        elif half.phase == "n":
            self._events.append(_event(half, half.ns, {}, "i"))
        elif begun := self._open.get(_key(half)):
            self._events.append(_event(begun.pop(), half.ns, half.args, "X"))
        else:
            self._stray += 1

    def events(self, left_out: Counter[str]) -> list[dict[str, Any]]:
        """Return events as the file would hold them if they were whole; one that has no end lasts until the last time.

        Args:
            left_out: where ends without a begin are counted.
        """
        if self._stray:
            left_out["end of a slice that has no begin"] += self._stray
        for begun in self._open.values():
            self._events += [_event(half, max(self._last_ns, half.ns), {"finished": False}, "X") for half in begun]
        self._open.clear()
        return self._events


def _key(half: Half) -> tuple[Any, ...]:
    if half.phase in "BE":
        return half.pid, half.tid
    return half.category, half.id, half.pid


def _event(begun: Half, end_ns: int, more: Mapping[str, Any], phase: str) -> dict[str, Any]:
    args = {**begun.args, **more}
    if begun.phase in "bn":
        args.setdefault("async id", begun.id)
    event = {"ph": phase, "cat": begun.category, "name": begun.name, "pid": begun.pid, "tid": begun.tid}
    return event | {"ts": _us(begun.ns), "dur": _us(end_ns - begun.ns), "args": args}


def _us(ns: int) -> str:
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"
