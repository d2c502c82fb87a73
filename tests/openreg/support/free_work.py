"""Random programs on the simulated runtime itself, with devprof's own ranges; says where a trace and the truth differ.

Nothing here needs torch. A program is data, as in `random_work`; `run` also says what it must leave, from the program alone.
"""

from __future__ import annotations

import json
import random
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import Call, Runtime

from devprof.errors import DevprofWarning
from devprof.host import RecordFunction, record_function
from devprof.model import ActivityType
from devprof.profiler import profile
from devprof.store import Trace

WORK = {
    "kernel": "scale",
    "set": "Memset (Device)",
    "upload": "Memcpy HtoD (Pageable -> Device)",
    "download": "Memcpy DtoH (Device -> Pageable)",
    "peer": "Memcpy PtoP (Device -> Device)",
}
"""What each action leaves on a device."""
ORDER = ("record", "wait", "sync device", "sync stream", "sync event")
ACTIONS = (*WORK, *ORDER, "enter", "leave", "op", "thread")
N_PLACES = 4
N_SLOTS = 3

DEVICE_WORK = (ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET)
CALLS_THAT_WORK = {
    Call.LAUNCH: ActivityType.CONCURRENT_KERNEL,
    Call.MEMCPY: ActivityType.GPU_MEMCPY,
    Call.MEMSET: ActivityType.GPU_MEMSET,
}


class Step(NamedTuple):
    """One step: what to do, on which of the four streams, with which event."""

    action: str
    place: int
    slot: int


class Expected(NamedTuple):
    """Work that a program must leave: its name, device, stream, innermost range of any kind and of the user's."""

    name: str
    device: int
    stream: int
    op: str | None
    user: str | None


def generate(seed: int, n_steps: int = 40) -> list[Step]:
    """Return a program that the seed decides."""
    choose = random.Random(seed)
    return [Step(choose.choice(ACTIONS), choose.randrange(N_PLACES), choose.randrange(N_SLOTS)) for _ in range(n_steps)]


class Program:
    """Runs steps on a runtime of two devices, on the default stream and another one of each."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        side = [runtime.create_stream(device) for device in range(2)]
        self.places = [(0, 0), (0, side[0]), (1, 0), (1, side[1])]

    def run(self, steps: Sequence[Step]) -> list[Expected]:
        """Run a program and return what it must leave, in order. Ranges that it leaves open are closed at its end."""
        self.events: dict[int, int] = {}
        self.ranges: list[tuple[str, bool]] = []
        self.expected: list[Expected] = []
        self.open: list[ExitStack] = []
        for number, step in enumerate(steps):
            self._do(number, *step)
        while self.open:
            self.open.pop().close()
        return self.expected

    def _do(self, number: int, action: str, index: int, slot: int) -> None:
        device, stream = self.places[index]
        if action in WORK:
            self._work(action, device, stream)
        elif action == "thread":  # a plain thread is outside of the range that started it
            inside, self.ranges = self.ranges, []
            thread = threading.Thread(target=self._work, args=("kernel", device, stream))
            thread.start()
            thread.join()
            self.ranges = inside
        elif action in ("enter", "op"):
            is_user, name = action == "enter", f"{action} {number}"
            self.open.append(ExitStack())
            self.open[-1].enter_context(record_function(name) if is_user else RecordFunction(name))
            self.ranges.append((name, is_user))
        elif action == "leave" and self.open:
            self.open.pop().close()
            self.ranges.pop()
        else:
            self._order(action, device, stream, slot)

    def _work(self, action: str, device: int, stream: int) -> None:
        where: dict[str, Any] = {"device": device, "stream": stream}
        match action:
            case "kernel":
                self.runtime.launch("scale", flops=1e6, bytes=4e4, **where)
            case "set":
                self.runtime.memset(1000, **where)
            case "upload":
                self.runtime.memcpy(CopyKind.HOST_TO_DEVICE, 5000, **where)
            case "download":
                self.runtime.memcpy(CopyKind.DEVICE_TO_HOST, 6000, **where)
            case "peer":
                self.runtime.memcpy(CopyKind.PEER_TO_PEER, 7000, peer=1 - device, **where)
        op = self.ranges[-1][0] if self.ranges else None
        user = next((name for name, is_user in reversed(self.ranges) if is_user), None)
        self.expected.append(Expected(WORK[action], device, stream, op, user))

    def _order(self, action: str, device: int, stream: int, slot: int) -> None:
        match action:
            case "record":
                self.events[slot] = self.runtime.event_create()
                self.runtime.event_record(self.events[slot], device, stream)
            case "wait" if slot in self.events:
                self.runtime.stream_wait_event(self.events[slot], device, stream)
            case "sync device":
                self.runtime.device_synchronize(device)
            case "sync stream":
                self.runtime.stream_synchronize(device, stream)
            case "sync event" if slot in self.events:
                self.runtime.event_synchronize(self.events[slot])


@dataclass
class Session:
    """A profile of a program, with what really happened and the warnings that devprof issued."""

    prof: Any
    expected: list[Expected]
    truth: list[dict[str, int]]
    warned: list[str]
    runtime: Runtime

    @property
    def trace(self) -> Trace:
        """The trace."""
        found: Trace = self.prof.trace
        return found

    @property
    def ledger(self) -> Any:
        """devprof's account of the simulated device."""
        return self.prof.report.ledgers["openreg"]


def record(runtime: Runtime, body: Callable[[], Any], **options: Any) -> Session:
    """Run `body` in a profile without torch."""
    runtime.forget_truth()
    options = {"activities": ["cpu", "openreg"], "host": "python", **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DevprofWarning)
        with profile(**options) as prof:
            expected = body()
    warned = [str(one.message) for one in caught if isinstance(one.message, DevprofWarning)]
    rows = runtime.ground_truth()
    truth = [{name: int(row[name]) for name in rows.dtype.names} for row in rows]
    return Session(prof, expected or [], truth, warned, runtime)


# --- the trace against the program and the truth ----------------------------------------------------------------------


def work_of(trace: Trace) -> list[int]:
    """Return the device work, in the order of its launches."""
    return sorted(trace.of_type(*DEVICE_WORK).tolist(), key=lambda event: int(trace.id[event]))


def names_by_id(trace: Trace) -> dict[int, str]:
    """Return the names of the host's ranges by id."""
    ranges = trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)
    return {int(trace.id[event]): trace.name_of(int(event)) for event in ranges}


def told(trace: Trace) -> list[Expected]:
    """Return what the trace tells of the device work."""
    names = names_by_id(trace)
    found = []
    for event in work_of(trace):
        row = trace.rows[trace.row[event]]
        op, user = int(trace.linked[event]), int(trace.linked_user[event])
        device = trace.places[row.place].id
        found.append(Expected(trace.name_of(event), device, row.id, names.get(op), names.get(user)))
    return found


def disagreements(session: Session, *, exact: bool = False) -> list[str]:
    """Say where the trace differs from what really happened; empty where it tells the truth.

    Args:
        session: a session of one program.
        exact: times are differences to the first ones, and are compared without any allowance (for a virtual clock).
    """
    trace = session.trace
    work, real = work_of(trace), [row for row in session.truth if row["call"] in CALLS_THAT_WORK]
    if len(work) != len(real):
        return [f"{len(work)} pieces of work in the trace, {len(real)} in truth"]
    allowed_ns = 0 if exact else int(session.ledger.clock.get("uncertainty_ns", 0))
    ours = int(trace.start_ns[work].min()) if exact and work else 0
    theirs = min((row["start_ns"] for row in real), default=0) if exact else 0
    found = []
    for event, row in zip(work, real, strict=True):
        where = trace.rows[trace.row[event]]
        facts = {
            "type": (int(trace.activity_type[event]), int(CALLS_THAT_WORK[Call(row["call"])])),
            "device": (trace.places[where.place].id, row["device"]),
            "stream": (where.id, row["stream"]),
            "op": (int(trace.linked[event]), row["op_id"]),
            "user": (int(trace.linked_user[event]), row["user_id"]),
        }
        found += [
            f"{key} of work {event}: told {one}, really {other}" for key, (one, other) in facts.items() if one != other
        ]
        for key, column in (("start_ns", trace.start_ns), ("end_ns", trace.end_ns)):
            off_ns = abs((int(column[event]) - ours) - (row[key] - theirs))
            found += [f"{key} of work {event} is {off_ns} ns off, {allowed_ns} allowed"] if off_ns > allowed_ns else []
        found += _family_disagreements(trace, event)
    return found


def _family_disagreements(trace: Trace, event: int) -> list[str]:
    """Check that work hangs below its launch, and the launch below its op."""
    launch = int(trace.parent[event])
    if (
        launch < 0
        or trace.activity_type[launch] != ActivityType.PRIVATEUSE1_RUNTIME
        or trace.id[launch] != trace.id[event]
    ):
        return [f"work {event} does not hang below its launch"]
    op = int(trace.parent[launch])
    if (int(trace.id[op]) if op >= 0 else 0) != int(trace.linked[launch]):
        return [f"launch {launch} does not hang below its op"]
    return []


def partial_overlaps(trace: Trace) -> list[tuple[str, str]]:
    """Return pairs of events on one row of a device of which one starts inside the other and ends after it."""
    rows: dict[int, list[int]] = defaultdict(list)
    for event in np.flatnonzero(trace.on_device):
        rows[int(trace.row[event])].append(int(event))
    found = []
    for events in rows.values():
        open_: list[int] = []
        for event in sorted(events, key=lambda one: (int(trace.start_ns[one]), -int(trace.end_ns[one]))):
            while open_ and trace.end_ns[open_[-1]] <= trace.start_ns[event]:
                open_.pop()
            if open_ and trace.end_ns[event] > trace.end_ns[open_[-1]]:
                found.append((trace.name_of(open_[-1]), trace.name_of(event)))
            open_.append(event)
    return found


def device_records(trace: Trace) -> list[list[Any]]:
    """Return the device work with times that start at 0, and without anything that differs from run to run."""
    work = work_of(trace)
    first = int(trace.start_ns[work].min()) if work else 0
    names = names_by_id(trace)
    return [
        [
            trace.name_of(event),
            trace.places[trace.rows[trace.row[event]].place].id,
            trace.rows[trace.row[event]].id,
            int(trace.start_ns[event]) - first,
            int(trace.end_ns[event]) - first,
            names.get(int(trace.linked[event])),
            names.get(int(trace.linked_user[event])),
            {key: str(value) for key, value in sorted(trace.items_of(event).items())},
        ]
        for event in work
    ]


def say(**facts: Any) -> None:
    """Tell the test that runs this program what was found: the last line of its output, as JSON."""
    print(json.dumps(facts), flush=True)
