"""`Mirrors`: the stack of ranges, kept a second time by plugins that read it themselves at a launch.

Such a stack is one per thread and takes only pushes and pops. Ranges of interleaved tasks are not left in the order of a stack,
so what lies above the range that is left is popped with it and pushed again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

__all__ = ["OP", "USER", "Mirror", "Mirrors"]

_logger = logging.getLogger("devprof.host")

OP, USER = 0, 1
"""Kinds of a pushed id: a range of any kind, and a user range (which is pushed as both)."""

Mirror = tuple[Callable[[int, int], object], Callable[[int], object]]
"""``push(kind, id)`` and ``pop(kind)``, called on the thread of the range."""


class _Shadow(threading.local):
    """What the calling thread has pushed: (id, kinds) from the outermost inwards; None before it pushed anything.

    Without an `__init__`: a signal handler that enters a range in the middle of one would find half an object.
    """

    entries: list[tuple[int, tuple[int, ...]]] | None = None


class Mirrors:
    """The mirrors of one session. A mirror that raises is dropped and noted.

    Attributes:
        notes: a sentence for each mirror that was dropped.
    """

    def __init__(self, mirrors: Iterable[Mirror]) -> None:
        self._mirrors = tuple(mirrors)
        self._shadow = _Shadow()
        self._ended_elsewhere: set[int] = set()
        self._is_closed = False
        self.notes: list[str] = []

    def enter(self, id: int, is_user: bool) -> None:
        """Push a range that was entered on this thread."""
        if self._is_closed:
            return
        self._drop_ended()
        kinds = (OP, USER) if is_user else (OP,)
        self._entries().append((id, kinds))
        for kind in kinds:
            self._push(kind, id)

    def leave(self, id: int) -> None:
        """Pop a range that was left on this thread; one of another thread is popped when that thread next comes by."""
        if self._is_closed:
            return
        entries = self._entries()
        at = next((i for i in range(len(entries) - 1, -1, -1) if entries[i][0] == id), None)
        if at is None:
            self._ended_elsewhere.add(id)
            return
        _, kinds = entries.pop(at)
        for kind in reversed(kinds):
            above = [other for other, of_kinds in entries[at:] if kind in of_kinds]
            for _ in range(len(above) + 1):
                self._pop(kind)
            for other in above:
                self._push(kind, other)
        self._drop_ended()

    def close(self) -> None:
        """Pop what the calling thread has pushed, and do nothing from now on."""
        entries = self._entries()
        while entries:
            for kind in reversed(entries.pop()[1]):
                self._pop(kind)
        self._is_closed = True

    def _entries(self) -> list[tuple[int, tuple[int, ...]]]:
        found = self._shadow.entries
        if found is None:
            found = self._shadow.entries = []
        return found

    def _drop_ended(self) -> None:
        entries, ended = self._entries(), self._ended_elsewhere
        while ended and entries and entries[-1][0] in ended:
            ended_id, kinds = entries.pop()
            ended.discard(ended_id)
            for kind in reversed(kinds):
                self._pop(kind)

    def _push(self, kind: int, id: int) -> None:
        for mirror in self._mirrors:
            try:
                mirror[0](kind, id)
            except Exception as error:  # noqa: BLE001  # a plugin's; it must not break the program
                self._drop(mirror, error)

    def _pop(self, kind: int) -> None:
        for mirror in self._mirrors:
            try:
                mirror[1](kind)
            except Exception as error:  # noqa: BLE001  # a plugin's; it must not break the program
                self._drop(mirror, error)

    def _drop(self, mirror: Mirror, error: Exception) -> None:
        self._mirrors = tuple(other for other in self._mirrors if other is not mirror)
        note = f"A mirror of the ranges was dropped: {mirror[0]!r} or its pop raised {type(error).__name__}: {error}"
        self.notes.append(note)
        _logger.warning("%s", note, exc_info=error)
