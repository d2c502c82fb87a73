"""Sessions of torch's profiler on the simulated device, read back whole, beside what the simulator says happened.

Used by the tests in this folder and by the programs that they run in processes of their own.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import torch
from openreg_sim.runtime import Call, runtime
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity

import devprof
from devprof.capture import PluginLedger, SessionReport
from devprof.errors import DevprofWarning, LossWarning
from devprof.torch.verify import DEVICE_CATEGORIES, load_strict

CPU, DEVICE = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1
BOTH = (CPU, DEVICE)
CATEGORY_OF_CALL = {Call.LAUNCH: "kernel", Call.MEMCPY: "gpu_memcpy", Call.MEMSET: "gpu_memset"}

LONG_KERNEL = "a long kernel"
"""Name of what `long_kernel` launches."""

Row = tuple[int, int]
"""Device and stream."""

_numbers = itertools.count(1)


class Slice(NamedTuple):
    """A slice of the trace's file, with exact times, Unix ns."""

    category: str
    name: str
    pid: Any
    tid: Any
    start_ns: int
    end_ns: int
    args: dict[str, Any]

    @property
    def row(self) -> Row:
        """Process and thread, or device and stream."""
        return self.pid, self.tid

    @property
    def op_id(self) -> int:
        """Id of the op that it belongs to, 0: none."""
        return int(self.args.get("External id", 0))

    @property
    def launch(self) -> int:
        """Launch number: equal on a launch and on its work."""
        return int(self.args["correlation"])

    @property
    def duration_ns(self) -> int:
        """Length, ns."""
        return self.end_ns - self.start_ns


class Trace:
    """A trace's file."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.events: list[dict[str, Any]] = document["traceEvents"]
        self._base_ns = document["baseTimeNanoseconds"]

    @classmethod
    def read(cls, path: Path) -> Trace:
        """Read a file as strict JSON."""
        return cls(load_strict(path))

    def ns(self, microseconds: Decimal | int) -> int:
        """Return a time of the file as Unix ns; fails where the file does not hold whole nanoseconds."""
        exact = self._base_ns + Decimal(microseconds) * 1000
        assert exact == int(exact)
        return int(exact)

    def slices(self, *categories: str) -> list[Slice]:
        """Return the slices of these categories, or of all, in the file's order."""
        return [
            Slice(
                event["cat"],
                event["name"],
                event["pid"],
                event["tid"],
                self.ns(event["ts"]),
                self.ns(Decimal(event["ts"]) + Decimal(event["dur"])),
                event.get("args", {}),
            )
            for event in self.events
            if event["ph"] == "X" and (not categories or event["cat"] in categories)
        ]

    def work(self) -> list[Slice]:
        """Return the work on devices: kernels, copies, sets."""
        return self.slices(*DEVICE_CATEGORIES)

    def launches(self) -> list[Slice]:
        """Return the calls of the runtime, in the order in which they were made."""
        return sorted(self.slices("privateuse1_runtime"), key=lambda one: one.launch)

    def ops(self) -> dict[int, Slice]:
        """Return the ops that torch recorded, by id."""
        return {one.op_id: one for one in self.slices("cpu_op")}

    def ranges(self) -> dict[int, Slice]:
        """Return the user's ranges on the host, by id."""
        return {one.op_id: one for one in self.slices("user_annotation")}

    def by_row(self, slices: Iterable[Slice]) -> dict[Row, list[Slice]]:
        """Sort slices into their rows, each in the order of time."""
        rows: dict[Row, list[Slice]] = defaultdict(list)
        for one in sorted(slices, key=lambda one: (one.start_ns, -one.end_ns)):
            rows[one.row].append(one)
        return dict(rows)

    def arrow_ends(self, category: str, phase: str) -> dict[int, list[dict[str, Any]]]:
        """Return the starts (``"s"``) or finishes (``"f"``) of arrows by id."""
        ends: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for event in self.events:
            if event.get("cat") == category and event["ph"] == phase:
                ends[event["id"]].append(event)
        return dict(ends)

    def row_names(self) -> dict[Row, tuple[str, str]]:
        """Return the names of device and stream of each device row."""
        named = [event for event in self.events if event["ph"] == "M"]
        devices = {e["pid"]: e["args"]["name"] for e in named if e["name"] == "process_name"}
        return {
            (e["pid"], e["tid"]): (devices[e["pid"]], e["args"]["name"])
            for e in named
            if e["name"] == "thread_name" and str(devices.get(e["pid"], "")).startswith("openreg")
        }


class Did(NamedTuple):
    """One call as the simulator knows it: what really happened."""

    call: Call
    kinds: int
    name: str
    device: int
    stream: int
    start_ns: int
    end_ns: int
    host_start_ns: int
    host_end_ns: int
    thread_id: int
    op_id: int
    user_id: int
    bytes: int
    correlation: int

    @property
    def row(self) -> Row:
        """Device and stream."""
        return self.device, self.stream

    @property
    def is_work(self) -> bool:
        """True for kernels, copies and sets."""
        return self.call in CATEGORY_OF_CALL


def truth(*, recorded: bool = True) -> list[Did]:
    """Return the calls since `runtime().forget_truth()`, in order: those for which some profiler asked, or all."""
    fields = [name for name in Did._fields if name not in ("call", "name")]
    rows = runtime().ground_truth()
    return [
        Did(call=Call(int(row["call"])), name=runtime().name_of(int(row["name"])), **{f: int(row[f]) for f in fields})
        for row in rows
        if row["kinds"] or not recorded
    ]


@dataclass
class Session:
    """A finished session: the profile, its file, devprof's account, what was warned of, and what really happened."""

    prof: Any
    trace: Trace
    report: SessionReport
    warned: list[DevprofWarning]
    did: list[Did]

    @property
    def ledger(self) -> PluginLedger:
        """The plugin's account."""
        return self.report.ledgers["openreg"]

    @property
    def worked(self) -> list[Did]:
        """What devices really did."""
        return [one for one in self.did if one.is_work]

    @property
    def loss_warnings(self) -> list[str]:
        """Texts of the warnings about losses."""
        return [str(one) for one in self.warned if isinstance(one, LossWarning)]


def profile(activities: Sequence[Any] = BOTH, **options: Any) -> torch.profiler.profile:
    """Return a torch profile of host and device."""
    return torch.profiler.profile(activities=list(activities), **options)


def record(body: Callable[[], object], folder: Path, activities: Sequence[Any] = BOTH, **options: Any) -> Session:
    """Run `body` in a profile, export it, and read everything that there is to read."""
    runtime().forget_truth()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DevprofWarning)
        with profile(activities, **options) as prof:
            body()
    warned = [one.message for one in caught if isinstance(one.message, DevprofWarning)]
    return Session(prof, exported(prof, folder), devprof.report_of(prof), warned, truth())


def exported(prof: Any, folder: Path, **options: Any) -> Trace:
    """Export a profile's trace and read it."""
    path = folder / f"trace {next(_numbers)}.json"
    prof.export_chrome_trace(str(path), **options)
    return Trace.read(path)


# --- torch's own view -------------------------------------------------------------------------------------------------


def host_events(prof: Any) -> list[Any]:
    """Return what torch lists for the host: ops, ranges, calls of the runtime."""
    return [event for event in prof.events() if event.device_type == DeviceType.CPU]


def device_events(prof: Any) -> list[Any]:
    """Return the device work that torch lists."""
    return [e for e in prof.events() if e.device_type == DeviceType.PrivateUse1 and not e.is_user_annotation]


def footer(table: str, label: str = "Self OPENREG time total") -> str:
    """Return a figure below torch's table, as printed."""
    (line,) = (line for line in table.splitlines() if line.startswith(f"{label}:"))
    return line.partition(":")[2].strip()


def listed_work(kernels: Iterable[Any]) -> Counter[tuple[str, int, float]]:
    """Count the entries of ops' `kernels`: name, device, microseconds."""
    return Counter((one.name, one.device, one.duration) for one in kernels)


# --- the trace against the truth --------------------------------------------------------------------------------------


def disagreements(session: Session, *, exact: bool = False) -> list[str]:
    """Say where the trace differs from what really happened; empty where it tells the truth.

    Compared are: every piece of device work with its name, category, stream, op and size, in the order of its stream; its
    start and end, to within the uncertainty that the session states; every call of the runtime with its op and thread; who
    launched what; and the user's ranges on devices.

    Args:
        session: a session in which the device's ring was empty at the start, with launches recorded.
        exact: times are differences to the first ones, and are compared without any allowance (for a virtual clock).
    """
    found = [*_work_disagreements(session, exact), *_call_disagreements(session, exact)]
    return found or _range_disagreements(session)


def _work_disagreements(session: Session, exact: bool) -> list[str]:
    told = session.trace.by_row(session.trace.work())
    real: dict[Row, list[Did]] = defaultdict(list)
    for one in session.worked:
        real[one.row].append(one)
    if told.keys() != real.keys():
        return [f"rows in the trace {sorted(told)}, in truth {sorted(real)}"]
    found = []
    for row, slices in told.items():
        tells = [(one.category, one.name, one.op_id, one.args.get("bytes")) for one in slices]
        happened = [
            (CATEGORY_OF_CALL[one.call], one.name, one.op_id, None if one.call is Call.LAUNCH else one.bytes)
            for one in real[row]
        ]
        found += [] if tells == happened else [f"row {row}: the trace tells {tells}, what happened is {happened}"]
    if found:
        return found
    pairs = [pair for row, slices in told.items() for pair in zip(slices, real[row], strict=True)]
    return [*_time_disagreements(session, pairs, exact), *_launch_disagreements(session, pairs)]


def _time_disagreements(session: Session, pairs: list[tuple[Slice, Did]], exact: bool) -> list[str]:
    if not pairs:
        return []
    allowed_ns = 0 if exact else int(session.ledger.clock["uncertainty_ns"])  # type: ignore[call-overload]
    first, did = min(pairs, key=lambda pair: pair[1].start_ns)
    origin, real_origin = (first.start_ns, did.start_ns) if exact else (0, 0)
    return [
        f"{one.name} on {one.row}: told {told_ns}, really {real_ns}, uncertainty {allowed_ns}"
        for one, real in pairs
        for told_ns, real_ns in (
            (one.start_ns - origin, real.start_ns - real_origin),
            (one.end_ns - origin, real.end_ns - real_origin),
        )
        if abs(told_ns - real_ns) > allowed_ns
    ]


def _launch_disagreements(session: Session, pairs: list[tuple[Slice, Did]]) -> list[str]:
    call_of = dict(zip((one.launch for one in _by_start(session.trace)), _by_entry(session.did), strict=False))
    return [
        f"{one.name} on {one.row} hangs on another launch than its own"
        for one, real in pairs
        if call_of.get(one.launch) != real
    ]


def _by_start(trace: Trace) -> list[Slice]:
    return sorted(trace.launches(), key=lambda one: (one.start_ns, one.end_ns))


def _by_entry(did: Iterable[Did]) -> list[Did]:
    return sorted(did, key=lambda one: (one.host_start_ns, one.host_end_ns))


def _call_disagreements(session: Session, exact: bool) -> list[str]:
    launches, did = _by_start(session.trace), _by_entry(session.did)
    shift = launches[0].start_ns - did[0].host_start_ns if exact and launches else 0
    tells = [(one.name, one.start_ns - shift, one.end_ns - shift, one.op_id, one.tid) for one in launches]
    happened = [(one.call.api_name, one.host_start_ns, one.host_end_ns, one.op_id, one.thread_id) for one in did]
    return [] if tells == happened else [f"calls in the trace {tells}, in truth {happened}"]


def _range_disagreements(session: Session) -> list[str]:
    """Compare the user's ranges on devices with the hull of the work below each."""
    told = Counter((one.op_id, one.row) for one in session.trace.slices("gpu_user_annotation"))
    hulls = expected_ranges(session)
    if told != Counter(hulls.keys()):
        return [f"user ranges on devices: the trace has {sorted(told.items())}, the work says {sorted(hulls)}"]
    names = {number: one.name for number, one in session.trace.ranges().items()}
    return [
        f"range {one.name!r} on {one.row} covers {one.start_ns, one.end_ns}, its work {hulls[one.op_id, one.row]}"
        for one in session.trace.slices("gpu_user_annotation")
        if one.name != names[one.op_id] or not _covers(one, hulls[one.op_id, one.row])
    ]


def _covers(span: Slice, hull: tuple[int, int]) -> bool:
    # Kineto's writer widens such a span by 1 ns at both ends, which devprof makes up for where two would touch
    return span.start_ns in (hull[0] - 1, hull[0]) and span.end_ns in (hull[1], hull[1] + 1)


def expected_ranges(session: Session) -> dict[tuple[int, Row], tuple[int, int]]:
    """Return the first start and last end of the work launched below each range, by range and row, as the trace times it.

    Which range a piece of work was launched in is the simulator's knowledge; which ranges lie around that one, the host's.
    """
    pairs = zip(_by_start(session.trace), _by_entry(session.did), strict=True)
    user_of = {one.launch: real.user_id for one, real in pairs}
    around = _enclosing(session.trace)
    hulls: dict[tuple[int, Row], tuple[int, int]] = {}
    for one in session.trace.work():
        for user in around.get(user_of[one.launch], ()):
            start_ns, end_ns = hulls.get((user, one.row), (one.start_ns, one.end_ns))
            hulls[user, one.row] = min(start_ns, one.start_ns), max(end_ns, one.end_ns)
    return hulls


def _enclosing(trace: Trace) -> dict[int, list[int]]:
    """Return each range's own id and those of the ranges around it on its thread."""
    ranges = trace.ranges()
    return {
        number: [
            outer_id
            for outer_id, outer in ranges.items()
            if outer.row == one.row and outer.start_ns <= one.start_ns and one.end_ns <= outer.end_ns
        ]
        for number, one in ranges.items()
    }


def partial_overlaps(trace: Trace) -> list[tuple[str, str]]:
    """Return pairs of slices on one row of a device of which one starts inside the other and ends after it."""
    rows = trace.by_row(
        one for one in trace.slices() if one.category in (*DEVICE_CATEGORIES, "gpu_user_annotation", "cuda_sync")
    )
    found = []
    for slices in rows.values():
        open_: list[Slice] = []
        for one in slices:
            while open_ and open_[-1].end_ns <= one.start_ns:
                open_.pop()
            if open_ and one.end_ns > open_[-1].end_ns:
                found.append((open_[-1].name, one.name))
            open_.append(one)
    return found


def say(**facts: Any) -> None:
    """Tell the test that runs this program what was found: the last line of its output, as JSON."""
    print(json.dumps(facts), flush=True)


def first_program() -> None:
    """Do what the first program does under its profile."""
    x = torch.randn(512, 512, device="openreg")
    y = torch.randn(512, 512, device="openreg")
    x @ y


def long_kernel(device: int) -> None:
    """Launch a kernel on a device's default stream that takes 275 ms of its time, at no cost to the host.

    It is launched by the runtime's own call: an op of torch's would compute something meanwhile.
    """
    runtime().drain()  # what torch has queued comes first
    runtime().launch(LONG_KERNEL, device=device, stream=0, flops=2.75e12)
