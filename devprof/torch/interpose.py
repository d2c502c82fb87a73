"""The wrap around torch's profiler entry points.

`torch.autograd.profiler` is the only caller of `_prepare_profiler`, `_enable_profiler`, `_disable_profiler` and
`_toggle_collection_dynamic` and looks them up as module names at each call; so replacing the names is enough, is reversible,
and reaches every front end of torch's profiler. A profile without a devprof plugin passes straight through. The functions
here only decide who may do what; `TorchSession` does the work.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.autograd import profiler as autograd_profiler

from devprof.errors import SessionError

if TYPE_CHECKING:
    from devprof.torch.session import TorchSession

__all__ = ["Interposer", "install", "installed", "uninstall"]

log = logging.getLogger("devprof.torch")

_NAMES = ("_prepare_profiler", "_enable_profiler", "_disable_profiler", "_toggle_collection_dynamic")


@dataclass(slots=True)
class Run:
    """One profile on its way through prepare, enable and disable.

    Attributes:
        owner: the profile object, held weakly.
        session: devprof's part in it; None where no plugin takes part.
        thread_id: thread that prepared it, later the one that started it.
    """

    owner: weakref.ref[Any]
    session: TorchSession | None
    thread_id: int

    def belongs_to(self, profile: Any) -> bool:
        """Say whether this is that profile's run."""
        return self.owner() is profile

    @property
    def lives(self) -> bool:
        """False where the profile object is gone, so that nobody can ever stop this run."""
        return self.owner() is not None


class Interposer:
    """State of the wrap: what was prepared last, and what is recording. One per process."""

    def __init__(self) -> None:
        self.originals: dict[str, Callable[..., Any]] = {}
        self._watches_forks = False
        self._lock = threading.Lock()
        self._prepared: Run | None = None
        self._active: Run | None = None
        self._preparing: Run | None = None  # inside torch's prepare at this moment
        # profiles that were refused, or whose preparation another profile took over: starting or stopping them would reach
        # the other profile's session inside torch
        self._barred: weakref.WeakSet[Any] = weakref.WeakSet()
        # profiles that a plugin took part in, with nothing prepared or recording in torch: when an exception such as Ctrl-C
        # leaves `step`, torch.profiler starts and stops what it had not prepared, and torch crashes
        self._idle: weakref.WeakSet[Any] = weakref.WeakSet()

    # -- installing --------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Replace torch's names; does nothing when that is done already."""
        if self.originals:
            return
        self.originals = {name: getattr(autograd_profiler, name) for name in _NAMES}
        for name, wrapper in zip(_NAMES, (self._prepare, self._enable, self._disable, self._toggle), strict=True):
            setattr(autograd_profiler, name, wrapper)
        if not self._watches_forks:
            os.register_at_fork(after_in_child=self._after_fork)
            self._watches_forks = True

    def uninstall(self) -> None:
        """Put torch's own functions back.

        Raises:
            SessionError: a profile with a devprof plugin is recording; its stop must still come through here.
        """
        if self._active is not None and self._active.session is not None:
            raise SessionError("a profile with a devprof plugin is recording; stop it before devprof is taken away")
        for name, original in self.originals.items():
            setattr(autograd_profiler, name, original)
        self.originals = {}

    def _after_fork(self) -> None:
        # the child has none of the parent's threads, and torch starts afresh in it
        self._lock = threading.Lock()
        self._prepared = self._active = self._preparing = None
        self._barred = weakref.WeakSet()

    # -- the wrappers ------------------------------------------------------------------------------------------------

    def _prepare(self, config: Any, activities: Any, *args: Any, **kwargs: Any) -> Any:
        from devprof.torch.request import calling_profile

        original = self.originals["_prepare_profiler"]
        profile = calling_profile()
        if profile is None:
            return original(config, activities, *args, **kwargs)
        session = self._session_for(profile, activities, kwargs.get("activity_filter") or (args[0] if args else None))
        run = Run(weakref.ref(profile), session, threading.get_ident())
        ended = self._claim_preparation(run, profile)
        try:
            for other, reason in ended:
                other.cancel(reason)
            if session is None:
                return original(config, activities, *args, **kwargs)
            return session.prepare(lambda: original(config, activities, *args, **kwargs))
        except BaseException:
            self._let_go(run, profile)
            raise
        finally:
            with self._lock:
                self._preparing = None

    def _enable(self, config: Any, activities: Any, *args: Any, **kwargs: Any) -> Any:
        from devprof.torch.request import calling_profile

        original = self.originals["_enable_profiler"]
        profile = calling_profile()
        if profile is None or not activities:  # emit_nvtx and emit_itt enable with an empty set
            return original(config, activities, *args, **kwargs)
        run = self._claim_start(profile)
        if run is None and profile in self._idle:
            log.warning("a profile that was not prepared is not started: torch would crash")
            return self._set_enabled_flag()
        if run is None:
            return original(config, activities, *args, **kwargs)
        try:
            if run.session is None:
                return original(config, activities, *args, **kwargs)
            return run.session.start(lambda: original(config, activities, *args, **kwargs))
        except BaseException:
            self._let_go(run, profile)
            self._set_enabled_flag()
            raise

    def _disable(self, *args: Any, **kwargs: Any) -> Any:
        from devprof.torch.request import calling_profile

        original = self.originals["_disable_profiler"]
        profile = calling_profile()
        self._refuse_never_started(profile)
        run = self._active
        if run is None and profile is not None and profile in self._idle:
            return profile.kineto_results
        if profile is None or run is None:
            return original(*args, **kwargs)
        self._refuse_foreign_stop(run, profile)
        try:
            if run.session is None:
                return original(*args, **kwargs)
            return run.session.stop(profile, lambda: original(*args, **kwargs))
        finally:
            if run.belongs_to(profile):
                with self._lock:
                    self._active = None
                    if run.session is not None:
                        self._idle.add(profile)

    def _toggle(self, enabled: bool, activities: Any) -> Any:
        """Tell plugins what torch 2.13 does not: it forwards a toggle of PrivateUse1 to nobody, with a log line."""
        original = self.originals["_toggle_collection_dynamic"]
        run = self._active
        if run is None or run.session is None:
            return original(enabled, activities)
        from devprof.torch.request import split_device

        device, others = split_device(activities)
        if device:
            run.session.toggle(enabled)
        return original(enabled, others) if others or not device else None

    # -- who may do what ---------------------------------------------------------------------------------------------

    def _session_for(self, profile: Any, activities: Any, filters: Any) -> TorchSession | None:
        """Return devprof's part; a mistake of devprof's own must not keep the user from profiling."""
        try:
            from devprof.torch.participants import session_for

            return session_for(profile, activities, filters)
        except Exception:
            log.exception("devprof takes no part in this profile: it failed to find out who does")
            return None

    def _claim_preparation(self, run: Run, profile: Any) -> list[tuple[TorchSession, str]]:
        """Make this run the one that is prepared; return the sessions that end with it, and why. Or refuse."""
        with self._lock:
            self._refuse_beside(self._preparing, "being prepared", run, profile)
            self._refuse_beside(self._active, "already recording", run, profile)
            taken, self._prepared, self._preparing = self._prepared, run, run
            gone = self._active if self._active is not None and not self._active.lives else None
            self._active = None if gone is not None else self._active
            self._barred.discard(profile)
            self._idle.discard(profile)
            other = taken.owner() if taken is not None else None
            if taken is not None and other not in (None, profile) and (taken.session or run.session):
                self._barred.add(other)
        ends = (
            (taken, "another profile was prepared before this one was started"),
            (gone, "its profile was dropped while it recorded"),
        )
        return [(one.session, reason) for one, reason in ends if one is not None and one.session is not None]

    def _refuse_beside(self, other: Run | None, doing: str, run: Run, profile: Any) -> None:
        if other is None or not other.lives or (run.session is None and other.session is None):
            return
        self._barred.add(profile)
        where = "this thread" if other.thread_id == run.thread_id else "another thread"
        raise SessionError(
            f"a profile is {doing} on {where}; torch crashes when a second one starts beside it, so devprof, whose plugin "
            "takes part, refuses. Stop the first profile, or put both into one"
        )

    def _claim_start(self, profile: Any) -> Run | None:
        """Make the profile's run the one that records, before torch starts it: nobody can come between."""
        with self._lock:
            run = self._prepared
            barred = profile in self._barred
            if not barred and run is not None and run.belongs_to(profile):
                run.thread_id = threading.get_ident()
                self._prepared, self._active = None, run
                return run
        if not barred:
            return None
        self._set_enabled_flag()
        raise SessionError(
            "this profile was prepared (its warm-up began), and then another profile was prepared, which cancels the first "
            "inside torch; starting it now would crash. Use one profile at a time, or start it again from the beginning"
        )

    def _let_go(self, run: Run, profile: Any) -> None:
        """Forget a run that could not be prepared or started."""
        with self._lock:
            self._prepared = None if self._prepared is run else self._prepared
            self._active = None if self._active is run else self._active
            if run.session is not None:
                self._idle.add(profile)

    def _refuse_never_started(self, profile: Any) -> None:
        if profile is not None and profile in self._barred:
            self._barred.discard(profile)
            raise SessionError(
                "this profile never recorded, because another one was in its way; there is nothing to stop"
            )

    def _refuse_foreign_stop(self, run: Run, profile: Any) -> None:
        if run.session is None:
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

    def _set_enabled_flag(self) -> None:
        """Torch sets its flag before it enables; after a refusal it must say what is true."""
        autograd_profiler._set_is_profiler_enabled(self._active is not None)


_INTERPOSER = Interposer()


def install() -> None:
    """Install the wrap, unless ``DEVPROF_DISABLE=1``. Idempotent."""
    if os.environ.get("DEVPROF_DISABLE") != "1":
        _INTERPOSER.install()


def uninstall() -> None:
    """Take the wrap away again; torch is as if devprof were not installed."""
    _INTERPOSER.uninstall()


def installed() -> bool:
    """Say whether the wrap is in place."""
    return bool(_INTERPOSER.originals)
