"""`Bench`: where a check puts a plugin to the test: sessions of a host, sessions of the kit's own, and what came of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from devprof.capture import PluginLedger
from devprof.contract import CorrelationAccess
from devprof.errors import DevprofWarning
from devprof.host import RecordFunction
from devprof.model import ActivityType
from devprof.profiler import profile
from devprof.registry import RegisteredProfiler
from devprof.store import Trace
from devprof.testing.conformance.direct import DirectSession
from devprof.testing.conformance.subject import Subject
from devprof.testing.conformance.table import Missing, Undecided
from devprof.testing.conformance.watching import Watch, Watched
from devprof.testing.conformance.workload import Device

__all__ = ["Bench", "Capture", "Settings"]

_WORK = (ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET)


@dataclass(frozen=True, slots=True)
class Settings:
    """How hard the kit tries.

    Attributes:
        sessions: sessions in a row, for leaks.
        kernels: kernels in one session, for overload.
        drift_s: length of the session in which drift would show, seconds.
        ops: ops per measurement of the cost of one.
        cost_ratio: how many times as much an op may cost with the plugin as without.
    """

    sessions: int = 1000
    kernels: int = 5000
    drift_s: float = 2.0
    ops: int = 2000
    cost_ratio: float = 50.0


@dataclass(slots=True)
class Capture:
    """One profile that has ended, seen from all sides.

    Attributes:
        prof: the `devprof.profile`.
        watched: the plugin's part, by cycle.
        warned: what devprof warned of.
        name: the plugin's name.
    """

    prof: Any
    watched: list[Watched]
    warned: list[str]
    name: str

    @property
    def seen(self) -> Watched:
        """The plugin's part in the latest cycle."""
        if not self.watched:
            raise Undecided("C106", "the plugin made no session")
        return self.watched[-1]

    @property
    def trace(self) -> Trace:
        """The trace."""
        found: Trace = self.prof.trace
        return found

    @property
    def ledger(self) -> PluginLedger:
        """The account that devprof keeps of the plugin."""
        found: PluginLedger = self.prof.report.ledgers[self.name]
        return found

    @property
    def uncertainty_ns(self) -> int:
        """How far the plugin's clock may be off, as devprof found."""
        said = self.ledger.clock.get("uncertainty_ns", 0)
        return int(said) if isinstance(said, int | float) else 0

    def work(self) -> list[int]:
        """Return the device work in the trace, in the order of its launches."""
        trace = self.trace
        return sorted(trace.of_type(*_WORK).tolist(), key=lambda event: int(trace.id[event]))

    def kernels(self, n: int) -> list[int]:
        """Return the n kernels in the trace.

        Raises:
            Undecided: there are not n.
        """
        self.delivered(n)
        found = [e for e in self.work() if self.trace.activity_type[e] == ActivityType.CONCURRENT_KERNEL]
        if len(found) != n:
            outside = self.ledger.dropped.total()
            raise Undecided("C501" if outside else "C602", f"{len(found)} of {n} kernels are in the trace")
        return found

    def delivered(self, n: int) -> Watched:
        """Return the plugin's part, in which it delivered n kernels.

        Raises:
            Undecided: it did not.
        """
        if len(self.seen.kernels) != n:
            raise Undecided("C401", f"{len(self.seen.kernels)} kernels were delivered where {n} were launched")
        return self.seen

    def owners(self, op_id: int) -> list[str]:
        """Return the names of the range with that op id and of those around it, innermost first; empty: unknown."""
        trace = self.trace
        ranges = trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)
        found = [event for event in ranges.tolist() if op_id and trace.id[event] == op_id]
        names = []
        event = found[0] if found else -1
        while event >= 0:
            names.append(trace.name_of(event))
            event = int(trace.parent[event])
        return names


class Bench:
    """One plugin, one workload, one host.

    Attributes:
        subject: the plugin.
        device: the workload.
        host: ``"python"`` or ``"torch"``.
        settings: how hard to try.
    """

    def __init__(
        self, subject: Subject, device: Device, host: str = "python", settings: Settings | None = None
    ) -> None:
        """Put a plugin on a bench."""
        self.subject = subject
        self.device = device.for_host(host)
        self.host = host
        self.settings = settings or Settings()
        self._plain_device = device

    @property
    def plugin(self) -> RegisteredProfiler:
        """The plugin.

        Raises:
            Undecided: devprof left it out.
        """
        if self.subject.profiler is None:
            raise Undecided("C102", "devprof left the plugin out")
        return self.subject.profiler

    @property
    def pushes(self) -> bool:
        """True where the plugin wants to hear of each op."""
        return self.plugin.capabilities.correlation is not CorrelationAccess.READ

    def begin(self, check: str) -> None:
        """Tell the workload which check begins, if it wants to know.

        Raises:
            Missing: it says what it lacks for that check.
        """
        if self._plain_device.has("begin_check") and (what := self._plain_device.call("begin_check", check, self.host)):
            raise Missing(what)

    # -- ranges and work ----------------------------------------------------------------------------------------------

    def in_op(self, name: str, body: Callable[[], object]) -> None:
        """Run `body` inside an op of that name, on this thread."""
        with RecordFunction(name):
            body()

    def launch(self, n: int = 1, op: str = "op", **place: Any) -> None:
        """Launch kernels inside an op."""
        self.in_op(op, lambda: self.device.launch(n, **place))

    # -- sessions -----------------------------------------------------------------------------------------------------

    def direct(self, kinds: Set[ActivityType] | None = None, *, inline: bool = False) -> DirectSession:
        """Configure a session that the check drives itself."""
        return DirectSession(self.plugin, self._plain_device, kinds, inline=inline)

    def session(
        self,
        body: Callable[[Capture], object],
        *,
        cpu: bool = True,
        judged: bool = True,
        **options: Any,
    ) -> Capture:
        """Profile `body`, which gets the capture as it begins.

        Args:
            body: the program.
            cpu: record the host's side too.
            judged: a plugin that was set aside leaves the check undecided; else the caller looks at it.
            options: of `devprof.profile`.

        Raises:
            Undecided: the plugin failed in a hook.
        """
        name = self.plugin.name
        with warnings.catch_warnings(record=True) as caught, Watch(self.plugin.profiler) as watch:
            warnings.simplefilter("always", DevprofWarning)
            prof = profile(activities=[*(["cpu"] if cpu else []), name], host=self.host, **options)
            capture = Capture(prof, watch.sessions, [], name)
            with prof:
                body(capture)
        if self._plain_device.has("note_trace"):
            self._plain_device.call("note_trace", prof.trace, self.host)
        capture.warned = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
        if judged and (failures := capture.ledger.failures):
            raise Undecided("C106", f"the plugin was set aside: {failures[0]}")
        return capture

    def work(self, n: int = 1, op: str = "op", **place: Any) -> Capture:
        """Profile one op that launches n kernels and waits for them."""

        def body(capture: Capture) -> None:
            self.launch(n, op, **place)
            self.device.synchronize()

        return self.session(body)

    # -- what there must be -------------------------------------------------------------------------------------------

    def claims(self, kind: ActivityType) -> bool:
        """Say whether the plugin records a kind."""
        return kind in self.plugin.available_activities

    def need(self, what: str, there: bool) -> None:
        """Go on where something is there.

        Raises:
            Missing: it is not.
        """
        if not there:
            raise Missing(what)
