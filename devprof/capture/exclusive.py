"""Of some things only one can run in a process: whoever runs it holds it, and says where it was started."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from devprof.capture.notices import users_place
from devprof.errors import SessionError

__all__ = ["RECORDING", "Exclusive", "Holder"]


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """Who runs.

    Attributes:
        what: words for it, such as ``"a devprof.profile"``.
        place: what of the user's started it, as `users_place` says.
        thread: name of the thread that started it.
    """

    what: str
    place: str
    thread: str


class Exclusive:
    """Held by one at a time. Callable from any thread; a forked child starts with it free."""

    def __init__(self) -> None:
        # reentrant: the run of a profile that was dropped is given back by a finalizer, which may come anywhere
        self._lock = threading.RLock()
        self._holder: Holder | None = None
        os.register_at_fork(after_in_child=self._forget)

    @property
    def holder(self) -> Holder | None:
        """Who holds it now."""
        return self._holder

    def check(self, what: str) -> None:
        """Raise as `take` would.

        Raises:
            SessionError: another one holds it.
        """
        with self._lock:
            self._refuse(what)

    def take(self, what: str) -> Holder:
        """Take it, and return what gives it back.

        Args:
            what: words for who takes it.

        Raises:
            SessionError: another one holds it; the message names the line that started that one.
        """
        holder = Holder(what, users_place(), threading.current_thread().name)
        try:
            with self._lock:
                self._refuse(what)
                self._holder = holder
        except BaseException:  # an interrupt, when it was taken already
            self.give_back(holder)
            raise
        return holder

    def give_back(self, holder: Holder | None) -> None:
        """Give it back; does nothing for one that does not hold it any more."""
        with self._lock:
            if self._holder is holder:
                self._holder = None

    def _refuse(self, what: str) -> None:
        other = self._holder
        if other is not None:
            raise SessionError(
                f"{what} cannot start: {other.what} is running already, started {other.place} on thread "
                f"{other.thread!r}. Stop that one first, or put both into one"
            )

    def _forget(self) -> None:
        self._lock, self._holder = threading.RLock(), None


RECORDING = Exclusive()
"""Held while plugins record or the host gives out correlation ids: both exist once per process."""
