"""`TorchSession`: devprof's part in one torch profile, from prepare to disable.

Plugin hooks run around torch's own calls, never inside Kineto's callbacks, where taking the GIL deadlocks. Whatever happens
here, torch's original function is called and its result reaches the profile.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.autograd import profiler as autograd_profiler

from devprof import correlation
from devprof.capture import (
    RECORDING,
    CaptureSession,
    HeldInterrupt,
    Holder,
    Lane,
    PhaseRunner,
    SessionReport,
    attach,
    started,
    warn_if_lossy,
)
from devprof.contract import CorrelationAccess, SessionConfig
from devprof.registry import RegisteredProfiler
from devprof.torch.bridge import Bridge
from devprof.torch.drain import drain
from devprof.torch.handed import Handed
from devprof.torch.interrupts import LateInterrupt
from devprof.torch.memory import TorchMemoryReporter
from devprof.torch.provider import NativeStacks
from devprof.torch.request import Request

__all__ = ["TorchSession"]

_SET_PROFILE = ctypes.pythonapi.PyEval_SetProfile  # the first look-up takes long: not in the user's trace

_WHAT = "a torch.profiler session with devprof plugins"


class TorchSession:
    """One capture under torch. `prepare`, `start` and `stop` each get torch's own call and return its result."""

    def __init__(self, bridge: Bridge, plugins: tuple[RegisteredProfiler, ...], request: Request) -> None:
        self._bridge = bridge
        self._request = request
        self._generation = 0
        self._handed = Handed()
        self._holder: Holder | None = None
        config = SessionConfig(
            host="torch",
            trace_id=request.trace_id,
            record_shapes=request.record_shapes,
            profile_memory=request.profile_memory,
            with_stack=request.with_stack,
            with_flops=request.with_flops,
            with_modules=request.with_modules,
            custom=request.custom,
            memory=TorchMemoryReporter(bridge),
            correlation_api=int(bridge.lib.devprof_correlation_table() or 0),
            now_ns=bridge.now_ns,
        )
        # plugin hooks may run torch ops; under all-thread profiling those would be in the user's trace
        runner = PhaseRunner(around=lambda: _without_ops(bridge))
        self._capture = CaptureSession(plugins, config, runner=runner)
        self._capture.report.host_ops = request.host_ops
        self._late_interrupt = LateInterrupt(bridge.lib.devprof_interrupt_later)

    def prepare(self, original: Callable[[], Any]) -> Any:
        """Configure the plugins, then let torch prepare; Kineto makes its child session during that call."""
        try:
            RECORDING.check(_WHAT)
            self._capture.prepare(self._request.types)
            if not self._capture.alive and not self._capture.report.has_verdict:
                return original()
            lib = self._bridge.lib
            self._generation = lib.devprof_capture_new()
            lib.devprof_arm(self._generation)
            try:
                return original()
            finally:
                lib.devprof_arm(0)
        except BaseException:
            self.cancel("the profile could not be prepared")
            raise

    def start(self, original: Callable[[], Any]) -> Any:
        """Start the plugins, then torch."""
        try:
            self._holder = RECORDING.take(_WHAT)
            correlation.set_provider(NativeStacks(self._bridge))
            if self._request.legacy:
                self._late_interrupt.install()
            self._mirror_stacks()
            self._capture.start()
            result = original()
        except BaseException:
            self.cancel("the profile could not be started")
            raise
        self._capture.watch_clocks()
        return result

    def stop(self, profile: Any, original: Callable[[], Any]) -> Any:
        """Drain the plugins, then let torch stop; return torch's result.

        A Ctrl-C during the drain is held until torch has stopped and the profile has its result; then it is raised.
        """
        try:
            return self._stop(profile, original)
        finally:
            self._late_interrupt.remove()
            RECORDING.give_back(self._holder)

    def _stop(self, profile: Any, original: Callable[[], Any]) -> Any:
        end_ns = self._bridge.now_ns()
        with HeldInterrupt(self._capture.runner.hurry) as interrupt:
            try:
                if self._generation:
                    self._drain_quietly(end_ns)
                else:  # a legacy profile, or one whose plugins all sat out or failed
                    self._capture.stop(lambda op_id: False, end_ns, end_ns)
            finally:
                result = profile.kineto_results = original()
            self._finish(profile)
            warn_if_lossy(self._capture.report)
            if interrupt.pending:
                # what `profile.__exit__` does after the result is there; the exception that follows keeps it from doing so
                autograd_profiler._run_on_profiler_stop()  # type: ignore[no-untyped-call]
        return result

    def toggle(self, enabled: bool) -> None:
        """Pause or resume the plugins, while recording."""
        self._capture.toggle(enabled)

    def cancel(self, reason: str) -> None:
        """End a capture that will not be stopped by its profile.

        Raises:
            KeyboardInterrupt: the user pressed Ctrl-C while the plugins were stopped; it was held until they were.
        """
        self._late_interrupt.remove()
        self._capture.cancel(reason)
        self._release()
        if self._capture.interrupt is not None:
            raise self._capture.interrupt

    @property
    def report(self) -> SessionReport:
        """The account of this session."""
        return self._capture.report

    def _mirror_stacks(self) -> None:
        bridge = self._bridge
        bridge.clear_mirrors()
        for lane in self._capture.lanes:
            if lane.alive and lane.native_correlation is not None:
                bridge.mirror(lane.native_correlation.push, lane.native_correlation.pop)
            elif lane.alive and lane.plugin.capabilities.correlation is CorrelationAccess.PYTHON:
                self._late_interrupt.install()
                bridge.mirror_python(_alone(bridge, lane, lane.push), _alone(bridge, lane, lane.pop))

    def _drain_quietly(self, end_ns: int) -> None:
        """Drain on a thread of its own, while this one records neither ops nor Python frames."""
        with _without_ops(self._bridge):
            if self._request.with_stack:
                # torch's tracer owns this thread's profile function and takes it off itself when it stops
                _SET_PROFILE(None, None)
            self._drain_on_thread(end_ns)

    def _drain_on_thread(self, end_ns: int) -> None:
        failed: list[BaseException] = []

        def body() -> None:
            began_ns = time.perf_counter_ns()
            try:
                drain(self._bridge, self._capture, self._generation, end_ns, self._handed)
                self._capture.report.timings_ns["drain"] = time.perf_counter_ns() - began_ns
            except BaseException as error:  # noqa: BLE001 - our own mistake: the user's result comes first
                failed.append(error)

        thread = threading.Thread(target=body, name="devprof-drain", daemon=True)
        if started(thread):
            thread.join()
        else:
            body()
        self._capture.report.notes += [f"devprof failed to drain: {error!r}" for error in failed]

    def _finish(self, profile: Any) -> None:
        report = self._capture.finish()
        if self._generation:
            self._handed.settle(self._bridge, self._generation, report)
        attach(profile, report)
        self._release()

    def _release(self) -> None:
        self._bridge.clear_mirrors()
        if self._holder is not None:  # else the provider is another session's
            correlation.set_provider(None)
            RECORDING.give_back(self._holder)
        if self._generation:
            self._bridge.lib.devprof_capture_drop(self._generation)


@contextmanager
def _without_ops(bridge: Bridge) -> Iterator[None]:
    """Record no ops on this thread meanwhile."""
    recorded = bridge.lib.devprof_record_function(0)
    try:
        yield
    finally:
        bridge.lib.devprof_record_function(recorded)


def _alone(bridge: Bridge, lane: Lane, forward: Callable[..., None]) -> Callable[..., None]:
    """Forward to a plugin, from inside of an op.

    Its own ops are not recorded: they would have it called again, without an end. A KeyboardInterrupt is its own, because the
    user's waits until the call is over.

    Args:
        bridge: the loaded bridge.
        lane: the plugin.
        forward: one of the lane's functions.
    """
    record_ops = bridge.lib.devprof_record_function  # per op, so without a context manager

    def call(kind: int, *ids: int) -> None:
        recorded = record_ops(0)
        try:
            forward(kind, *ids)
        except KeyboardInterrupt:
            method = f"{forward.__name__}{'_user' if kind else ''}_correlation_id"
            lane.blame(f"session.{method}", "raised KeyboardInterrupt")
        finally:
            record_ops(recorded)

    return call
