"""What `devprof.profile` asks of a host, and what a host answers: the values that both sides share.

A host records the program's own side: torch, or devprof itself. The front door decides when; a host knows how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from devprof.capture.ledger import SessionReport
from devprof.model import ActivityType
from devprof.store import Trace
from devprof.store.limits import Limits
from devprof.store.totals import NameTotal

__all__ = ["ProfileOptions", "ProfilerHost", "ProfilerStats", "StepCounter", "WantedActivity"]


@dataclass(frozen=True, slots=True)
class WantedActivity:
    """A group of activities that the user asked for.

    Attributes:
        name: torch's name of the group, such as ``"CPU"`` or ``"PrivateUse1"``, or a text as the user gave it, such as a
            plugin's name.
        kinds: record these kinds only; None: all that there are.
    """

    name: str
    kinds: frozenset[ActivityType] | None = None


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """What the user asked for.

    Attributes:
        cpu: record the host's side; None: no.
        devices: groups of device activities; None: all that there are.
        record_shapes, profile_memory, with_stack, with_flops, with_modules, acc_events: as torch.profiler has them.
        make_trace_id: gives the id of the next trace.
        torch_only: further options that only torch's profiler knows, by name.
        limits: how much is kept of what the host and each plugin record; None: all, within `DEVPROF_MAX_RECORDS`.
    """

    cpu: WantedActivity | None
    devices: tuple[WantedActivity, ...] | None
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    acc_events: bool
    make_trace_id: Callable[[], str]
    torch_only: Mapping[str, object] = field(default_factory=dict)
    limits: Limits | None = None


@dataclass(slots=True)
class ProfilerStats:
    """How long the profiler itself took in its latest cycle, nanoseconds.

    Attributes:
        prepare_ns: getting ready, at the start of the warm-up.
        enable_ns: from the call of start until everything records.
        disable_ns: from the call of stop until nothing records and every plugin has handed over its records.
        parse_ns: converting clocks and linking, or reading what torch recorded.
        tree_ns: putting everything into one tree; 0 where torch recorded, there it is part of the reading.
        window_ns: length of the recorded window.
        number_of_events: events in the trace.
    """

    prepare_ns: int = 0
    enable_ns: int = 0
    disable_ns: int = 0
    parse_ns: int = 0
    tree_ns: int = 0
    window_ns: int = 0
    number_of_events: int = 0


class StepCounter(Protocol):
    """Counts steps of several requesters. Source: torch/autograd/profiler.py (`KinetoStepTracker`)."""

    def init_step_count(self, requester: str) -> object:
        """Let a requester count from the global step on."""

    def increment_step(self, requester: str) -> object:
        """Count a step of a requester."""

    def erase_step_count(self, requester: str) -> object:
        """Forget a requester."""


class ProfilerHost(Protocol):
    """Records for one `devprof.profile`, in one cycle after the other: `prepare`, `start`, `stop`.

    Every call comes from a thread of the user's, one at a time.

    Attributes:
        name: ``"torch"`` or ``"python"``.
        trace_id: id of the trace that was prepared last, empty before.
        stats: what the latest cycle took.
        step_counters: where the host itself wants steps counted, beside devprof's own.
    """

    name: str
    trace_id: str
    stats: ProfilerStats
    step_counters: tuple[StepCounter, ...]

    @property
    def report(self) -> SessionReport | None:
        """The account of the plugins in the latest cycle; None where none took part, or before the first."""

    def prepare(self) -> None:
        """Get ready; raises where that cannot be, and then nothing is left behind."""

    def start(self) -> None:
        """Begin to record; raises where that cannot be, and then nothing is left behind."""

    def stop(self) -> None:
        """End the recording. The trace is there afterwards, also where this raises an interrupt that it held back."""

    def cancel(self, reason: str) -> None:
        """End whatever runs, without a trace; does nothing where nothing runs, and never raises."""

    def toggle(self, enabled: bool, activities: tuple[WantedActivity, ...]) -> None:
        """Pause or resume some activities while recording."""

    def snapshot(self, seconds: float | None) -> Trace:
        """Return what was recorded in the last seconds, or all that is kept, while recording goes on; on any thread."""

    def totals(self) -> list[NameTotal]:
        """Return counts and times per name, of everything since the start; on any thread."""

    def stopped_early(self) -> bool:
        """Say whether the device has stopped recording by itself."""

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put JSON text under a key of this trace's metadata, and of all later ones."""

    def trace(self) -> Trace:
        """Return the trace of the latest cycle."""

    def export_chrome_trace(self, path: str, trace: Callable[[], Trace]) -> None:
        """Write the latest cycle as a Chrome trace.

        Args:
            path: the file.
            trace: gives the trace as the front door has it.
        """

    def check_thread(self, call: str) -> None:
        """Raise a `SessionError` where this thread may not make that call now."""
