"""Who may prepare, start and stop: one profile at a time where a devprof plugin takes part.

torch crashes, or ends another profile's session, when profiles nest, run side by side or change threads. Where no plugin takes
part nothing is refused: torch is then as it is without devprof. Every decision is taken under one lock and before torch is
called, so that no thread can come between a decision and what follows from it.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from devprof.errors import SessionError

if TYPE_CHECKING:
    from devprof.torch.session import TorchSession

__all__ = ["Run", "Turns"]


@dataclass(slots=True)
class Run:
    """One profile on its way through prepare, enable and disable.

    Attributes:
        owner: the profile object, held weakly.
        takes_part: True where a plugin takes part, so that torch's own crashes are to be refused.
        thread_id: thread that prepared it, later the one that started it.
        session: devprof's part in it; None where it has none.
        place: what of the user's prepared it, as `users_place` says; empty where no plugin takes part.
    """

    owner: weakref.ref[Any]
    takes_part: bool
    thread_id: int
    session: TorchSession | None = None
    place: str = ""

    def belongs_to(self, profile: Any) -> bool:
        """Say whether this is that profile's run."""
        return self.owner() is profile

    @property
    def lives(self) -> bool:
        """False where the profile object is gone, so that nobody can ever stop this run."""
        return self.owner() is not None


def _taken_over() -> SessionError:
    return SessionError(
        "this profile was prepared (its warm-up began), and then another profile was prepared, which cancels the first "
        "inside torch; starting it now would crash. Use one profile at a time, or start it again from the beginning"
    )


class Turns:
    """What was prepared last, and what is recording. One per process; callable from any thread."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, as a forked child must: it has none of the parent's threads, and torch starts afresh in it."""
        self._lock = threading.Lock()
        self.prepared: Run | None = None
        self.active: Run | None = None
        self.preparing: Run | None = None  # inside torch's prepare at this moment
        # profiles that were refused, or whose preparation another profile took over: starting or stopping them would reach
        # the other profile's session inside torch; with why
        self._barred: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        # profiles that a plugin took part in, with nothing prepared or recording in torch: when an exception such as Ctrl-C
        # leaves `step`, torch.profiler starts and stops what it had not prepared, and torch crashes
        self._idle: weakref.WeakSet[Any] = weakref.WeakSet()

    def is_idle(self, profile: Any) -> bool:
        """Say whether a plugin took part in this profile and torch has nothing of it now."""
        return profile in self._idle

    def claim_preparation(self, run: Run, profile: Any, *, is_guest: bool = False) -> list[tuple[TorchSession, str]]:
        """Make this run the one that is prepared; return the sessions that end with it, and why.

        Raises:
            SessionError: another profile is recording or being prepared, and a plugin takes part in one of the two; or it waits
                in its warm-up, and this one is a guest, which came from outside.
        """
        with self._lock:
            if is_guest and self.prepared is not None and self.prepared.lives:
                raise SessionError("a profile of the program's own is in its warm-up; ask again when it has ended")
            self._refuse_beside(self.preparing, "being prepared", run, profile)
            self._refuse_beside(self.active, "already recording", run, profile)
            taken, self.prepared, self.preparing = self.prepared, run, run
            gone = self.active if self.active is not None and not self.active.lives else None
            self.active = None if gone is not None else self.active
            self._barred.pop(profile, None)
            self._idle.discard(profile)
            other = taken.owner() if taken is not None else None
            if taken is not None and other not in (None, profile) and (taken.takes_part or run.takes_part):
                self._barred[other] = str(_taken_over())
        ends = (
            (taken, "another profile was prepared before this one was started"),
            (gone, "its profile was dropped while it recorded"),
        )
        return [(one.session, reason) for one, reason in ends if one is not None and one.session is not None]

    def _refuse_beside(self, other: Run | None, doing: str, run: Run, profile: Any) -> None:
        if other is None or not other.lives or not (run.takes_part or other.takes_part):
            return
        where = "this thread" if other.thread_id == run.thread_id else "another thread"
        begun = f", begun {other.place}" if other.place else ""
        refusal = SessionError(
            f"a profile is {doing} on {where}{begun}; torch crashes when a second one starts beside it, so devprof, whose "
            "plugin takes part, refuses. Stop the first profile, or put both into one"
        )
        self._barred[profile] = str(refusal)
        raise refusal

    def claim_start(self, profile: Any) -> Run | None:
        """Make the profile's run the one that records, before torch starts it: nobody can come between.

        Raises:
            SessionError: another profile took over this one's preparation, or was in the way of it.
        """
        with self._lock:
            run = self.prepared
            why = self._barred.get(profile)
            if why is None and run is not None and run.belongs_to(profile):
                run.thread_id = threading.get_ident()
                self.prepared, self.active = None, run
                return run
        if why is None:
            return None
        # a `with` block that a refusal ends starts its profile once more; the reason is the same, and is said once
        raise SessionError(why) from None

    def let_go(self, run: Run, profile: Any) -> None:
        """Forget a run that could not be prepared or started."""
        with self._lock:
            self.prepared = None if self.prepared is run else self.prepared
            self.active = None if self.active is run else self.active
            if run.takes_part:
                self._idle.add(profile)

    def refuse_never_started(self, profile: Any) -> None:
        """Refuse to stop a profile that was refused itself, or whose preparation was taken over."""
        if profile is not None and profile in self._barred:
            del self._barred[profile]
            raise SessionError(
                "this profile never recorded, because another one was in its way; there is nothing to stop"
            )

    def refuse_foreign_stop(self, run: Run, profile: Any) -> None:
        """Refuse a stop by another profile, or on another thread than the start."""
        if not run.takes_part:
            return
        if not run.belongs_to(profile):
            raise SessionError(
                "this profile is not the one that is recording; stopping it would end the other profile's session inside torch"
            )
        if run.thread_id != threading.get_ident():
            raise SessionError(
                f"this profile was started on thread {run.thread_id} and is stopped on thread {threading.get_ident()}; torch "
                "keeps its state per thread and would lose the trace or crash. Stop it on the thread that started it"
            )

    def prepared_now(self) -> None:
        """Say that torch's prepare has returned."""
        with self._lock:
            self.preparing = None

    def ended(self, run: Run, profile: Any) -> None:
        """Say that the profile's run has stopped."""
        if run.belongs_to(profile):
            with self._lock:
                self.active = None
                if run.takes_part:
                    self._idle.add(profile)
