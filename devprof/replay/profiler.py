"""`ReplayProfiler`: a plugin whose device is a recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Any

from devprof.contract import CONTRACT_VERSION, Capabilities, CorrelationAccess, SessionConfig
from devprof.errors import UsageError
from devprof.model import ActivityType
from devprof.replay.faults import Fault, Faults, faults_of
from devprof.replay.files import load
from devprof.replay.player import Player, ReplayedError
from devprof.replay.recording import Recording
from devprof.replay.session import ReplaySession

__all__ = ["ReplayProfiler"]

_NAME = "replay"


class ReplayProfiler:
    """Delivers what a backend delivered, in a live session of any host.

    Attributes:
        player: where the replay is.
        faults: what is injected.
        exact: True where times are those of the recording, to the nanosecond, relative to the start of the window: the session
            has a virtual clock. False: the recorded clock runs again, beside the host's, and devprof measures it. So it is in
            torch's sessions in any case: torch compares when a call was made with when its op ran.
        held_back: batches of a late flush, for the next session.
    """

    def __init__(
        self,
        recording: Recording | str | os.PathLike[str],
        *,
        faults: str | Iterable[str | Fault] = (),
        exact: bool | None = None,
        name: str = _NAME,
    ) -> None:
        """Take a recording.

        Args:
            recording: the recording, or its file.
            faults: what to inject: see `devprof.replay.FAULTS`.
            exact: see above; by default True, but for a recorded run of the conformance kit and in torch's sessions.
            name: the plugin's name.

        Raises:
            TraceFileError: the file is no recording.
            UsageError: a fault is unknown, or nothing is recorded.
        """
        found = recording if isinstance(recording, Recording) else load(recording)
        if not found.sessions:
            raise UsageError("the recording has no session")
        self.player = Player(found)
        self.faults = Faults(faults_of(faults))
        self.exact = not found.is_conformance if exact is None else exact
        self._must_be_exact = exact is True
        self.held_back: list[Any] = []
        self._name = name

    @property
    def recording(self) -> Recording:
        """The recording."""
        return self.player.recording

    def name(self) -> str:
        """Return the plugin's name."""
        return self._name

    def capabilities(self) -> Capabilities:
        """Return the backend's, but that ops are pushed: the recorded ids need live ones."""
        recorded = self.recording.capabilities
        return replace(
            recorded,
            contract_version=CONTRACT_VERSION,
            correlation=CorrelationAccess.PYTHON,
            description=f"a recording of {self.recording.plugin}",
        )

    def available_activities(self) -> Set[ActivityType]:
        """Return the kinds that the backend could record."""
        return self.recording.available

    def refuse_idle_faults(self, host: str) -> None:
        """Refuse a fault that would change nothing in sessions of that host, ``"torch"`` or ``"python"``.

        Raises:
            UsageError: the clock is to step, and none runs.
        """
        if self.faults.number("clock-step") is None:
            return
        if self.exact and host != "torch":
            raise UsageError(
                "the fault 'clock-step' changes what a running clock is read as, and exact times read none: let the recorded "
                "clock run with --live-clock (exact=False)"
            )
        if not any(one.domain is not None and not one.domain.virtual for one in self.recording.sessions):
            raise UsageError("the fault 'clock-step' changes nothing here: the recorded device has no clock that runs")

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> ReplaySession | None:
        """Return the next recorded session.

        Raises:
            ReplayedError: the backend raised here.
            UsageError: exact times were asked for in so many words, and this is torch; there is no further session; or a fault
                would change nothing.
        """
        self.refuse_idle_faults(config.host)
        recorded = self.player.next_session()
        for call in recorded.hooks:
            if call.hook == "configure" and call.failed:
                raise ReplayedError(call.failed)
        if recorded.refused:
            return None
        if self._must_be_exact and config.host == "torch":
            raise UsageError(
                "exact=True is for devprof's own host: torch compares a call's time with its op's; leave it out"
            )
        return ReplaySession(self, recorded, frozenset(activity_types), config)
