"""The wrap around torch's profiler entry points.

`torch.autograd.profiler` is the only caller of `_prepare_profiler`, `_enable_profiler`, `_disable_profiler` and
`_toggle_collection_dynamic` and looks them up as module names at each call; so replacing the names is enough, is reversible,
and reaches every front end of torch's profiler. A profile without a devprof plugin passes straight through. `Turns` decides
who may do what, `TorchSession` does the work, `SaveWrap` lets a finished profile be saved again.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch.autograd import profiler as autograd_profiler

from devprof.errors import SessionError
from devprof.torch.kineto_requests import not_a_request
from devprof.torch.making_way import guest_is_here, make_way
from devprof.torch.sink_save import SaveWrap
from devprof.torch.turns import Run, Turns

if TYPE_CHECKING:
    from devprof.torch.participants import Plan
    from devprof.torch.session import TorchSession

__all__ = ["Interposer", "install", "installed", "uninstall"]

log = logging.getLogger("devprof.torch")


class Interposer:
    """The wrap. One per process."""

    def __init__(self) -> None:
        self.originals: dict[str, Callable[..., Any]] = {}
        self.turns = Turns()
        self._save = SaveWrap()
        self._watches_forks = False

    def install(self) -> None:
        """Replace torch's names; does nothing when that is done already."""
        if self.originals:
            return
        wrappers: dict[str, Callable[..., Any]] = {
            "_prepare_profiler": self._prepare,
            "_enable_profiler": self._enable,
            "_disable_profiler": self._disable,
            "_toggle_collection_dynamic": self._toggle,
        }
        self.originals = {name: getattr(autograd_profiler, name) for name in wrappers}
        for name, wrapper in wrappers.items():
            setattr(autograd_profiler, name, wrapper)
        self._save.install()
        if not self._watches_forks:
            os.register_at_fork(after_in_child=self.turns.reset)
            self._watches_forks = True

    def uninstall(self) -> None:
        """Put torch's own functions back.

        Raises:
            SessionError: a profile with a devprof plugin is recording; its stop must still come through here.
        """
        if self.turns.active is not None and self.turns.active.session is not None:
            raise SessionError("a profile with a devprof plugin is recording; stop it before devprof is taken away")
        for name, original in self.originals.items():
            setattr(autograd_profiler, name, original)
        self._save.uninstall()
        self.originals = {}

    def _prepare(self, config: Any, activities: Any, *args: Any, **kwargs: Any) -> Any:
        from devprof.torch.request import calling_profile

        original = self.originals["_prepare_profiler"]
        profile = calling_profile()
        if profile is None:
            return original(config, activities, *args, **kwargs)
        plan = _plan_for(profile, activities, kwargs.get("activity_filter") or (args[0] if args else None))
        # torch crashes where a guest and the program's own profile meet, so both have that refused
        takes_part = plan is not None or guest_is_here()
        run = Run(weakref.ref(profile), takes_part, threading.get_ident(), place=_place() if takes_part else "")
        ended = self._claim(run, profile)
        try:
            for other, reason in ended:
                other.cancel(reason)
            run.session = None if plan is None else _session_of(plan)
            if run.session is None:
                with not_a_request():
                    return original(config, activities, *args, **kwargs)
            return run.session.prepare(lambda: original(config, activities, *args, **kwargs))
        except BaseException:
            self.turns.let_go(run, profile)
            raise
        finally:
            self.turns.prepared_now()

    def _claim(self, run: Run, profile: Any) -> list[tuple[TorchSession, str]]:
        """Claim torch's prepare. A capture that came from outside makes way for a profile of the program's own."""
        make_way()
        while True:
            try:
                return self.turns.claim_preparation(run, profile, is_guest=guest_is_here())
            except SessionError:
                if not make_way():
                    raise

    def _enable(self, config: Any, activities: Any, *args: Any, **kwargs: Any) -> Any:
        from devprof.torch.request import calling_profile

        original = self.originals["_enable_profiler"]
        profile = calling_profile()
        if profile is None or not activities:  # emit_nvtx and emit_itt enable with an empty set
            return original(config, activities, *args, **kwargs)
        try:
            run = self.turns.claim_start(profile)
        except SessionError:
            self._set_enabled_flag()
            raise
        if run is None and self.turns.is_idle(profile):
            log.warning("a profile that was not prepared is not started: torch would crash")
            return self._set_enabled_flag()
        if run is None:
            return original(config, activities, *args, **kwargs)
        try:
            if run.session is None:
                return original(config, activities, *args, **kwargs)
            return run.session.start(lambda: original(config, activities, *args, **kwargs))
        except BaseException:
            self.turns.let_go(run, profile)
            self._set_enabled_flag()
            raise

    def _disable(self, *args: Any, **kwargs: Any) -> Any:
        from devprof.torch.request import calling_profile

        original = self.originals["_disable_profiler"]
        profile = calling_profile()
        if profile is None:
            return original(*args, **kwargs)
        self.turns.refuse_never_started(profile)
        run = self.turns.active
        if run is None and self.turns.is_idle(profile):
            return profile.kineto_results
        if run is None:
            return original(*args, **kwargs)
        self.turns.refuse_foreign_stop(run, profile)
        try:
            if run.session is None:
                return original(*args, **kwargs)
            return run.session.stop(profile, lambda: original(*args, **kwargs))
        finally:
            self.turns.ended(run, profile)

    def _toggle(self, enabled: bool, activities: Any) -> Any:
        """Tell plugins what torch 2.13 does not: it forwards a toggle of PrivateUse1 to nobody, with a log line."""
        original = self.originals["_toggle_collection_dynamic"]
        run = self.turns.active
        if run is None or run.session is None:
            return original(enabled, activities)
        from devprof.torch.request import split_device

        device, others = split_device(activities)
        if device:
            run.session.toggle(enabled)
        return original(enabled, others) if others or not device else None

    def _set_enabled_flag(self) -> None:
        """Torch sets its flag before it enables; after a refusal it must say what is true."""
        autograd_profiler._set_is_profiler_enabled(self.turns.active is not None)


def _place() -> str:
    from devprof.capture import users_place  # not with `import torch`: a program that uses no plugin pays for none

    return users_place()


def _plan_for(profile: Any, activities: Any, filters: Any) -> Plan | None:
    """Return who takes part; a mistake of devprof's own must not keep the user from profiling."""
    try:
        from devprof.torch.participants import plan_for

        return plan_for(profile, activities, filters)
    except Exception:
        log.exception("devprof takes no part in this profile: it failed to find out who does")
        return None


def _session_of(plan: Plan) -> TorchSession | None:
    """Return devprof's part, with the bridge loaded: while no other session is active, as Kineto's registry wants it."""
    try:
        from devprof.torch.participants import open_session

        return open_session(plan)
    except Exception:
        log.exception("devprof takes no part in this profile: its session could not be made")
        return None


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
