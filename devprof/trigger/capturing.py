"""One capture, from a request to a file. It runs on a thread of its own, which is gone afterwards."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devprof.capture.guest import GUEST
from devprof.errors import BuildError, UsageError
from devprof.trigger.folder import Folder
from devprof.trigger.request import Answer, CaptureRequest
from devprof.trigger.steps import StepGate, Steps
from devprof.trigger.wire import hung_up

if TYPE_CHECKING:
    from devprof.profiler import profile

__all__ = ["Capture"]

_REASONS = {
    "asked": "the capture was ended from the other side",
    "program": "a profile of the program's own began",
    "exit": "the program ended",
}


class Capture:
    """One request under way.

    Args:
        request: what to record.
        connection: to the other side; where it ends, the capture does.
        folder: where the trace goes.
        steps: where the program counts its steps.
        limit_s: the longest that the program allows.
        activities: what to record where the request does not say; None: all there is.
        host: as for `devprof.profile`.

    Attributes:
        is_recording: True once the profile has started.
    """

    def __init__(
        self,
        request: CaptureRequest,
        connection: socket.socket,
        folder: Folder,
        steps: Steps,
        limit_s: float,
        activities: tuple[str, ...] | None,
        host: str,
    ) -> None:
        self.request = request
        self._connection = connection
        self._folder = folder
        self._steps = steps
        self._limit_s = limit_s if request.seconds is None else min(request.seconds, limit_s)
        self._activities = list(request.activities) or (None if activities is None else list(activities))
        self._host = host
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._reason = ""
        self.is_recording = False

    def leave(self, reason: str) -> None:
        """End it early. Callable from any thread; does not wait."""
        self._reason = self._reason or reason
        self._wake()

    def close(self) -> None:
        """Close what it holds open, as a forked child must."""
        self._woken.close()
        self._waker.close()

    def run(self, recording: Callable[[], object]) -> Answer:
        """Record and write.

        Args:
            recording: called when the profile has started.

        Raises:
            SessionError: the program is profiling itself.
            UsageError: what was asked for cannot be recorded here, or no step came.
            DevprofError, OSError: it could not be recorded or written.
        """
        gate = None if self.request.steps is None else StepGate(self.request.steps, self._wake)
        GUEST.enter(lambda: self.leave("program"))
        try:
            self._folder.check()
            return self._record(self._profile(), gate, recording)
        finally:
            self._steps.gate = None
            if gate is not None:
                gate.ended()
            GUEST.left()
            self.close()

    def _record(self, prof: profile, gate: StepGate | None, recording: Callable[[], object]) -> Answer:
        deadline_s = time.monotonic() + self._limit_s
        if gate is not None:
            self._steps.gate = gate
            self._wait(deadline_s, lambda: gate.may_begin)
            self._check_began(gate)
        prof.start()
        began_s = time.monotonic()
        try:
            self.is_recording = True
            if gate is not None:
                gate.began()
            with suppress(OSError):  # the other side is gone; the wait below notices
                recording()
            self._wait(began_s + self._limit_s, lambda: gate is not None and gate.is_over)
        finally:
            seconds = time.monotonic() - began_s
            prof.stop()
        if gate is not None:
            gate.ended()
        GUEST.left()  # a profile of the program's own need not wait for the file
        return self._written(prof, gate, seconds)

    def _check_began(self, gate: StepGate) -> None:
        if gate.may_begin:
            return
        if self._reason:
            raise UsageError(f"nothing was recorded: {_REASONS[self._reason]} before a step of the program ended")
        raise UsageError(
            f"no step of the program ended within {self._limit_s:g} s. What counts as a step: step() of an optimizer of "
            "torch's, or step() of the listener that devprof.on_demand() gives. Ask for seconds instead of steps"
        )

    def _wait(self, deadline_s: float, is_enough: Callable[[], bool]) -> None:
        while not self._reason and not is_enough():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            if hung_up(self._connection, self._woken, left_s):
                self._reason = self._reason or "asked"
                return
            with suppress(BlockingIOError):
                self._woken.recv(4096, socket.MSG_DONTWAIT)

    def _wake(self) -> None:
        with suppress(OSError):  # its buffer is full, so it is awake; or the capture is over
            self._waker.send(b".")

    def _profile(self) -> profile:
        from devprof.profiler import profile

        request, torch = self.request, _torch_host(self._host)
        more: dict[str, Any] = {}
        if torch:
            from devprof.torch.on_demand import every_thread

            more = {"host": "torch", "experimental_config": every_thread()}
        return profile(
            activities=self._activities,
            with_stack=request.with_stack,
            record_shapes=request.record_shapes,
            profile_memory=request.profile_memory,
            **(more or {"host": "python"}),
        )

    def _written(self, prof: profile, gate: StepGate | None, seconds: float) -> Answer:
        notes: list[str] = []
        path, events = self._write(prof, notes)
        with suppress(UsageError):  # no plugin took part
            report = prof.report
            notes += str(report).splitlines() if report.ledgers else []
        return Answer(
            path=str(path),
            host="torch" if prof.torch_profile is not None else "python",
            seconds=seconds,
            steps=None if gate is None else gate.count,
            events=events,
            size_bytes=path.stat().st_size,
            ended_by=self._ended_by(gate),
            notes=tuple(notes),
        )

    def _ended_by(self, gate: StepGate | None) -> str:
        return self._reason or ("steps" if gate is not None and gate.is_over else "time")

    def _write(self, prof: profile, notes: list[str]) -> tuple[Path, int | None]:
        from devprof.store import save

        if self.request.format != ".devprof":
            return self._folder.write(self.request.format, lambda path: prof.export_chrome_trace(str(path))), None
        try:
            trace = prof.trace
        except BuildError as error:
            notes.append(f"written as .json: a .devprof of torch's trace needs a native library ({error})")
            return self._folder.write(".json", lambda path: prof.export_chrome_trace(str(path))), None
        return self._folder.write(".devprof", lambda path: save(trace, path)), len(trace)


def _torch_host(host: str) -> bool:
    return host == "torch" or (host == "auto" and hasattr(sys.modules.get("torch"), "autograd"))
