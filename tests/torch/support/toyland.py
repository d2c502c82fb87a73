"""A toy device and plugins whose behaviour a test writes, for tests on real torch.

Used by the tests in this folder and by the programs that they run in processes of their own. The device runs no work: its
runtime is told what to record, and records it with the ids that are current on the calling thread, as a vendor's would.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity

import devprof
import devprof.torch
from devprof import correlation, registry
from devprof.capture import PluginLedger
from devprof.contract import NativeBuild
from devprof.errors import DevprofWarning
from devprof.model import ActivityType, GenericTraceActivity
from devprof.native import build, load
from devprof.testing import ScriptedProfiler, plugin_of
from devprof.torch.text import TextCleaner
from devprof.torch.verify import load_strict

Join = Callable[..., ScriptedProfiler]
"""Fixture `join`: register a scripted profiler, made of these fields, for the length of a test."""
Program = Callable[..., dict[str, Any]]
"""Fixture `program`: run a program in a process of its own and return what it said."""

Deliver = Callable[..., "Delivered"]
"""Fixture `deliver`: one session of a plugin that delivers what a script makes of the window."""

CPU, DEVICE = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1
BOTH = (CPU, DEVICE)

_numbers = itertools.count(1)
_library: list[torch.library.Library] = []


def backend() -> str:
    """Return the name of the renamed backend; gives it one where nobody has."""
    if torch._C._get_privateuse1_backend_name() == "privateuseone":
        torch.utils.rename_privateuse1_backend("toy")
    return str(torch._C._get_privateuse1_backend_name())


def block_installed_plugins(setenv: Callable[[str, str], Any] = os.environ.__setitem__) -> None:
    """Leave out every plugin that happens to be installed here, so that only the test's own take part."""
    setenv("DEVPROF_BLOCK_PLUGINS", ",".join(entry.name for entry in entry_points(group=registry.ENTRY_POINT_GROUP)))
    registry.refresh()


def take_in(profiler: ScriptedProfiler | None = None, *, stubs: Any = None, enable: bool = True) -> str:
    """Register a plugin and let it take part in device sessions; returns the plugin's name, to be given to `take_out`."""
    name = f"plugin {next(_numbers)}"
    registry.register(plugin_of(*([profiler] if profiler else []), stubs=stubs), name)
    if enable and profiler is not None:
        devprof.torch.enable(name)
    return name


def take_out(name: str) -> None:
    """Undo `take_in`."""
    devprof.torch.disable(name)
    registry.unregister(name)


def scripted(**fields: Any) -> ScriptedProfiler:
    """Return a scripted profiler with a name of its own: one that hangs is left out for the life of the process."""
    return ScriptedProfiler(**{"label": f"scripted {next(_numbers)}", **fields})


@contextmanager
def alone(*profilers: ScriptedProfiler) -> Iterator[None]:
    """For programs: only these profilers take part."""
    backend()
    block_installed_plugins()
    devprof.torch.install()
    names = [take_in(profiler) for profiler in profilers]
    yield
    for name in names:
        take_out(name)


def profile(activities: Sequence[Any] = BOTH, **options: Any) -> torch.profiler.profile:
    """Return a torch profile of host and device."""
    return torch.profiler.profile(activities=list(activities), **options)


def exported(prof: Any, folder: Path) -> dict[str, Any]:
    """Export the trace and read it as strict JSON."""
    path = folder / f"trace {next(_numbers)}.json"
    prof.export_chrome_trace(str(path))
    return load_strict(path)


def cleaned(text: str) -> str:
    """Return a text as the file holds it."""
    return TextCleaner(lambda name: False).text(text)


def slices(trace: dict[str, Any], *categories: str) -> list[dict[str, Any]]:
    """Return the events of these categories."""
    return [event for event in trace["traceEvents"] if event.get("cat") in categories]


def names(trace: dict[str, Any], *categories: str) -> list[str]:
    """Return the names of the events of these categories, in the file's order."""
    return [event["name"] for event in slices(trace, *categories)]


def absolute_ns(trace: dict[str, Any], event: dict[str, Any]) -> int:
    """Return when an event started, Unix ns; fails where the file does not hold whole nanoseconds."""
    exact = trace["baseTimeNanoseconds"] + Decimal(event["ts"]) * 1000
    assert exact == int(exact)
    return int(exact)


def ops_of(prof: Any) -> list[str]:
    """Return the names of the ops that torch recorded, in order."""
    return [event.name for event in prof.events() if event.device_type == torch.autograd.DeviceType.CPU]


@dataclass
class Delivered:
    """A finished session: the profile, its trace read as strict JSON, the plugin's account, and what devprof warned of."""

    prof: Any
    trace: dict[str, Any]
    ledger: PluginLedger
    warned: list[str]


def delivered(plugin: ScriptedProfiler, folder: Path, body: Callable[[], Any], options: dict[str, Any]) -> Delivered:
    """Run `body` in a profile that the plugin takes part in, export, and read everything that there is to read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DevprofWarning)
        with profile(**options) as prof:
            body()
    trace = exported(prof, folder)
    prof.events()
    prof.key_averages().table()
    warned = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    return Delivered(prof, trace, devprof.report_of(prof).ledgers[plugin.label], warned)


def assert_closes(session: Delivered, produced: int) -> None:
    """The account holds exactly what was delivered, and the trace carries the same account."""
    ledger = session.ledger
    assert ledger.emitted + ledger.dropped.total() + ledger.rejected.total() == ledger.produced == produced
    in_trace = session.trace["devprof"]["plugins"][ledger.plugin]
    assert in_trace == devprof.report_of(session.prof).as_dict()["plugins"][ledger.plugin]


def kernel(name: str = "k", *, at: int, ns: int = 100, **fields: Any) -> GenericTraceActivity:
    """Return a kernel."""
    return GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, name, at, at + ns, **fields)


class Runtime:
    """A device's runtime: `launch` records a launch on the calling thread and its work on the device.

    Attributes:
        seen: (op id, user id) current at each launch.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self._records: list[GenericTraceActivity] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def launch(
        self,
        name: str = "k",
        *,
        device: int = 0,
        stream: int = 0,
        works: int = 1,
        work_type: ActivityType = ActivityType.CONCURRENT_KERNEL,
        launches: bool = True,
        **fields: Any,
    ) -> int:
        """Record one launch and `works` pieces of work of 100 ns each; returns the launch number."""
        op, user = correlation.current()
        number = next(self._numbers)
        start = time.time_ns()
        end = time.time_ns()
        common = {"id": number, "thread_id": threading.get_native_id(), "linked": op, "linked_user": user, **fields}
        records = [
            GenericTraceActivity(
                work_type, name, end + 200 * i, end + 200 * i + 100, device=device, resource=stream, **common
            )
            for i in range(works)
        ]
        if launches:
            records.append(
                GenericTraceActivity(ActivityType.PRIVATEUSE1_RUNTIME, f"launch {name}", start, end, **common)
            )
        with self._lock:
            self.seen.append((op, user))
            self._records += records
        return number

    def script(self, start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        """Hand over what was recorded since the last time."""
        with self._lock:
            records, self._records = self._records, []
        return records


def run_in_op(body: Callable[[], None]) -> None:
    """Call `body` inside a torch op named ``toy::run``, on this thread."""
    if not _library:
        library = torch.library.Library("toy", "FRAGMENT")
        library.define("run(Tensor x) -> Tensor")
        library.impl("run", _run, "CPU")
        _library.append(library)
    _bodies.append(body)
    torch.ops.toy.run(torch.zeros(1))


_bodies: list[Callable[[], None]] = []


def _run(x: torch.Tensor) -> torch.Tensor:
    _bodies.pop()()
    return x.clone()


@functools.cache
def other_backend() -> ctypes.CDLL:
    """Load another backend's library, which registers its own profiler and stubs when a program tells it to."""
    spec = NativeBuild("other-backend", (Path(__file__).with_name("other_backend.cpp"),))
    build(spec)
    return load(spec)


def drive_stubs(what: str, name: str = "name") -> tuple[int, list[int]]:
    """Have torch call one of its registered stubs; returns what it answered, and the devices that were visited."""
    visited = (ctypes.c_int * 16)()
    answer = other_backend().other_drive_stubs(what.encode(), name.encode(), visited)
    return answer, visited[: answer if what == "on_each_device" else 0]


class Event:
    """What `Stubs.record` hands out."""

    def __init__(self, number: int) -> None:
        self.number = number


class Stubs:
    """Stubs of the legacy profiler that note every call; an event is a number, and time is `us_per_event` between two.

    Attributes:
        calls: the calls and their arguments, in order; events by number.
        faults: what a method does instead, by name.
    """

    def __init__(self, us_per_event: float = 10.0, **faults: Callable[..., Any]) -> None:
        self.torch_device = backend()
        self.calls: list[tuple[Any, ...]] = []
        self.threads: set[int] = set()
        self.faults = faults
        self._us_per_event = us_per_event
        self._numbers = itertools.count(1)

    def record(self) -> Any:
        event = Event(next(self._numbers))
        self.threads.add(threading.get_ident())
        return self._note("record", event.number, result=event)

    def elapsed(self, start: Event, end: Event) -> Any:
        us = (end.number - start.number) * self._us_per_event
        return self._note("elapsed", start.number, end.number, result=us)

    def mark(self, name: str) -> Any:
        return self._note("mark", name)

    def range_push(self, name: str) -> Any:
        return self._note("range_push", name)

    def range_pop(self) -> Any:
        return self._note("range_pop")

    def enabled(self) -> Any:
        return self._note("enabled", result=True)

    def on_each_device(self, visit: Callable[[int], None]) -> Any:
        self._note("on_each_device")
        for device in (0, 1, 2):
            visit(device)

    def synchronize(self) -> Any:
        return self._note("synchronize")

    def count(self, method: str) -> int:
        return sum(call[0] == method for call in self.calls)

    def _note(self, method: str, *args: Any, result: Any = None) -> Any:
        self.calls.append((method, *args))
        return self.faults[method]() if method in self.faults else result


def say(**facts: Any) -> None:
    """Tell the test that runs this program what was found: the last line of its output, as JSON."""
    print(json.dumps(facts), flush=True)
