"""One profile runs at a time, from its start to its stop; what becomes of one that nobody stops."""

from __future__ import annotations

import os
import warnings
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from devprof.capture import Exclusive, Holder
from devprof.capture.guest import GUEST
from devprof.capture.hosting import ProfilerHost
from devprof.errors import SessionError
from devprof.registry import hook_here

__all__ = ["PROFILES", "Forked", "Run", "follow_forks", "refuse_in_hooks"]


class _Profiles(Exclusive):
    """Held by one profile; a capture that came from outside leaves for one of the program's own."""

    def take(self, what: str) -> Holder:
        """Take it, when a guest has made way.

        Raises:
            SessionError: another one holds it.
        """
        GUEST.make_way()
        while True:
            try:
                return super().take(what)
            except SessionError:
                if not GUEST.make_way():
                    raise


PROFILES = _Profiles()
"""Held by the `devprof.profile` that runs, whatever its host."""


def refuse_in_hooks(call: str, what: str = "start, step or stop a profile") -> None:
    """Refuse to move a profile from inside of a plugin's hook, which the profile waits for.

    Args:
        call: what was called.
        what: what a hook cannot do.

    Raises:
        SessionError: the calling thread is in a hook.
    """
    hook = hook_here()
    if hook:
        raise SessionError(f"{call}() inside a plugin's {hook}; a hook cannot {what}")


class Forked(Protocol):
    """What must know that its process is the child of a fork."""

    def _forget_threads(self) -> None:
        """Let go of what other threads hold: they are not in the child."""


_following: weakref.WeakSet[Forked] = weakref.WeakSet()


def follow_forks(one: Forked) -> None:
    """Tell `one`, for as long as it lives, when it finds itself in a forked child."""
    _following.add(one)


def _tell_in_child() -> None:
    for one in list(_following):
        one._forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell_in_child)


@dataclass(slots=True)
class Run:
    """A profile between its start and its stop.

    Attributes:
        holder: its hold on `PROFILES`.
        pid: the process that started it; a forked child has a copy that records nothing.
        guard: ends it where the profile object goes away, or the program ends, without a stop.
    """

    holder: Holder
    pid: int
    guard: weakref.finalize[[ProfilerHost, Holder, int], object]

    @classmethod
    def of(cls, profile: object, host: ProfilerHost, holder: Holder) -> Run:
        """Return the run of a profile that has just started."""
        pid = os.getpid()
        return cls(holder, pid, weakref.finalize(profile, _abandon, host, holder, pid))

    @property
    def is_ours(self) -> bool:
        """False in a child that was forked meanwhile."""
        return self.pid == os.getpid()

    def end(self) -> None:
        """Let others run."""
        self.guard.detach()
        PROFILES.give_back(self.holder)


def _abandon(host: ProfilerHost, holder: Holder, pid: int) -> None:
    """End a run that nobody can stop any more; quietly, because it may be the end of the program."""
    if pid != os.getpid():
        return
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        host.cancel("the profile was dropped, or the program ended, while it recorded")
    PROFILES.give_back(holder)
