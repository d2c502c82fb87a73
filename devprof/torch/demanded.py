"""`DemandedSession`: devprof's part in a capture that Kineto was asked for from outside."""

from __future__ import annotations

import logging
import os
import time

from devprof import correlation
from devprof.capture import RECORDING
from devprof.model import ActivityType
from devprof.registry import discover
from devprof.torch.bridge import Bridge
from devprof.torch.drain import drain
from devprof.torch.participants import profilers_for
from devprof.torch.provider import NativeStacks
from devprof.torch.request import Request
from devprof.torch.session import TorchSession

__all__ = ["DemandedSession", "demanded_session"]

log = logging.getLogger("devprof.torch")

_WHAT = "a trace that Kineto was asked for from outside"
# Kineto's default set of kinds has CUDA's calls and not those of PrivateUse1, which must be named; who asks for a device's
# calls means those of the device that is there
_CALLS = {
    ActivityType.CUDA_RUNTIME: ActivityType.PRIVATEUSE1_RUNTIME,
    ActivityType.CUDA_DRIVER: ActivityType.PRIVATEUSE1_DRIVER,
}


class DemandedSession(TorchSession):
    """Driven by one thread, in the order `begin`, `end`, `close`, or given up at any point."""

    _begun_ns = 0

    @property
    def generation(self) -> int:
        """Number of the capture in the bridge."""
        return self._generation

    def prepare_for(self, generation: int) -> None:
        """Configure the plugins; Kineto has made its session already."""
        self._generation = generation
        RECORDING.check(_WHAT)
        self._capture.prepare(self._request.types)

    @property
    def has_begun(self) -> bool:
        """True once the plugins were started."""
        return self._holder is not None

    def began_at(self, kineto_ns: int) -> None:
        """Note what was missed: when Kineto began to record, Unix ns."""
        late_ns = self._begun_ns - kineto_ns
        if late_ns > 0:
            self.report.notes.append(f"the plugins began {late_ns / 1e6:.3f} ms after Kineto did")

    def begin(self) -> None:
        """Start the plugins."""
        self._holder = RECORDING.take(_WHAT)
        correlation.set_provider(NativeStacks(self._bridge))
        self._mirror_stacks()
        self._capture.start()
        self._begun_ns = self._bridge.now_ns()
        self._capture.watch_clocks()

    def end(self, end_ns: int) -> None:
        """Drain the plugins and hand their records to Kineto, which waits for them."""
        began_ns = time.perf_counter_ns()
        drain(self._bridge, self._capture, self._generation, end_ns, self._handed)
        self.report.timings_ns["drain"] = time.perf_counter_ns() - began_ns
        if not self._bridge.lib.devprof_capture_ready(self._generation):
            self._handed.lose("Kineto did not wait for it")
            self.report.notes.append(
                "Kineto did not wait for the plugins' records any longer; its trace has none of them"
            )
        self._bridge.clear_mirrors()
        correlation.set_provider(None)
        RECORDING.give_back(self._holder)
        self._holder = None

    def close(self) -> None:
        """Close the account, when Kineto has written its trace."""
        report = self._capture.finish()
        self._handed.settle(self._bridge, self._generation, report)
        log.info("a trace that was asked for from outside: %s", report)
        self._release()

    def give_up(self, reason: str) -> None:
        """End without records."""
        self._bridge.lib.devprof_capture_ready(self._generation)
        self.cancel(reason)


def demanded_session(bridge: Bridge, generation: int, asked: int) -> DemandedSession | None:
    """Return the part of devprof's plugins in a request, configured; None where none takes part.

    Args:
        bridge: the loaded bridge.
        generation: number of the capture in the bridge.
        asked: bit n stands for the kind of activity with number n.
    """
    types = _types(asked)
    plugins = profilers_for(discover())
    if not plugins:
        return None
    request = Request(
        types=types,
        legacy=False,
        host_ops=ActivityType.CPU_OP in types,
        with_stack=False,
        record_shapes=False,
        profile_memory=False,
        with_flops=False,
        with_modules=False,
        custom="",
        trace_id="",
    )
    session = DemandedSession(bridge, plugins, request)
    session.prepare_for(generation)
    return session


def _types(asked: int) -> frozenset[ActivityType]:
    types = {kind for kind in ActivityType if asked >> int(kind) & 1}
    if os.environ.get("DEVPROF_SYNC_EVENTS") != "1":
        types.discard(ActivityType.CUDA_SYNC)  # as in a profile: their time would count as work
    return frozenset(types | {ours for theirs, ours in _CALLS.items() if theirs in types})
