"""A capture that came from outside is a guest: where the program begins a profile of its own, the guest leaves."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["GUEST", "Guest"]

_LONGEST_S = 60.0


@dataclass(frozen=True, slots=True)
class _Present:
    thread_id: int
    leave: Callable[[], object]
    gone: threading.Event = field(default_factory=threading.Event)


class Guest:
    """At most one guest per process. Callable from any thread; a forked child starts without one."""

    def __init__(self) -> None:
        self._present: _Present | None = None
        os.register_at_fork(after_in_child=self._forget)

    def enter(self, leave: Callable[[], object]) -> None:
        """Say that the calling thread records as a guest from now on, to `left`.

        Args:
            leave: asks it to stop; called on other threads, must not wait.
        """
        self._present = _Present(threading.get_ident(), leave)

    def left(self) -> None:
        """Say that the calling thread's guest has stopped; does nothing on other threads."""
        present = self._present
        if present is not None and self.is_here:
            self._present = None
            present.gone.set()

    @property
    def is_here(self) -> bool:
        """True on the guest's own thread."""
        present = self._present
        return present is not None and present.thread_id == threading.get_ident()

    def make_way(self) -> bool:
        """Let a guest stop, for a profile of the program's own that begins; return whether there was one, and it has gone.

        Waits until it has stopped, for as long as its plugins may take; without a guest it is one look.
        """
        present = self._present
        if present is None or self.is_here:
            return False
        present.leave()
        return present.gone.wait(_LONGEST_S)

    def _forget(self) -> None:
        self._present = None


GUEST = Guest()
"""The process's guest."""
