"""What a plugin is before any session."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from devprof.model import ActivityType
from devprof.testing.conformance.bench import Bench
from devprof.testing.conformance.table import DIRECT, check, expect

__all__: list[str] = []

_OF_THE_HOST = frozenset(
    {
        ActivityType.CPU_OP,
        ActivityType.USER_ANNOTATION,
        ActivityType.CPU_INSTANT_EVENT,
        ActivityType.PYTHON_FUNCTION,
    }
)

_FRESH = """
import importlib, json, os, sys, threading
import devprof.registry
def nodes():
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if path.startswith("/dev/") and not path.startswith(("/dev/null", "/dev/pts", "/dev/tty", "/dev/urandom", "/dev/shm")):
            found.add(path)
    return found
before = nodes(), {thread.name for thread in threading.enumerate()}
name = sys.argv[1]
if ":" in name:
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if callable(found) and not hasattr(found, "devprof_activity_profilers"):
        found = found()
    profilers = found.devprof_activity_profilers() if hasattr(found, "devprof_activity_profilers") else [found]
    for one in profilers:
        one.name(), one.capabilities(), one.available_activities()
else:
    os.environ["DEVPROF_BLOCK_PLUGINS"] = ""
    devprof.registry.discover().profilers_for(None, [name])
print(json.dumps({
    "device nodes": sorted(nodes() - before[0]),
    "threads": sorted({thread.name for thread in threading.enumerate()} - before[1]),
}))
"""


@check(
    "C101",
    hosts=DIRECT,
    cause="The name is made anew at each call, from a count, a version or the device that is found. Return a constant.",
)
def name_is_short_and_stable(bench: Bench) -> None:
    """The plugin has a short name, the same each time.

    Asks `name()` twice. Users write the name in `activities=[...]`, and reports are kept under it.
    """
    found = [bench.plugin.profiler.name() for _ in range(2)]
    plain = found[0] == bench.plugin.name == found[1] and found[0] == found[0].strip() and len(found[0]) <= 40
    expect(plain, expected="one name of at most 40 letters, every time", found=[bench.plugin.name, *found])


@check(
    "C102",
    hosts=DIRECT,
    cause="A hook or method is missing, has another signature, or returns another type; the sentence names it.",
)
def fits_the_contract(bench: Bench) -> None:
    """The plugin fits the contract, so devprof takes it in.

    Registers the plugin as devprof does, and looks at what it could not take. Everything else needs this.
    """
    failures = list(bench.subject.failures)
    if bench.subject.profiler is None and not failures:
        failures = ["it brings no activity profiler"]
    expect(not failures, expected="no failure at registration", found="; ".join(failures))


@check(
    "C103",
    hosts=DIRECT,
    needs=("importable",),
    cause="The module, or a method that is called at registration, opens the device or starts a thread. Every command "
    "and every program that only lists plugins would pay for it, and a forked child would have a broken device. "
    "Do it in `configure`.",
)
def import_touches_no_device(bench: Bench) -> None:
    """Importing the plugin opens no device and starts no thread.

    Imports the plugin in a fresh interpreter, asks it what it is, and compares the open files under /dev and the threads
    with those before.
    """
    path = os.pathsep.join([*(entry for entry in sys.path if entry), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", _FRESH, bench.subject.importable],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout.strip().splitlines()
    expect(done.returncode == 0 and bool(said), expected="an import that succeeds", found=done.stderr.strip()[-500:])
    found = {what: names for what, names in json.loads(said[-1]).items() if names}
    expect(not found, expected="no device node opened, no thread started", found=found)


@check(
    "C104",
    hosts=DIRECT,
    needs=("device calls",),
    cause="`capabilities()` or `available_activities()` asks the device. They are called where nobody has asked for a "
    "profile, without a time budget. Return what is known without the device, and ask it in `configure`.",
)
def facts_need_no_device(bench: Bench) -> None:
    """Asking a plugin what it is calls no device.

    Calls `name()`, `capabilities()` and `available_activities()`, and compares the workload's `device_calls()` before and
    after.
    """
    profiler = bench.plugin.profiler
    before = bench.device.call("device_calls")
    profiler.name(), profiler.capabilities(), profiler.available_activities()
    made = bench.device.call("device_calls") - before
    expect(made == 0, expected="no call of the device", found=f"{made} calls")


@check(
    "C105",
    hosts=DIRECT,
    cause="Ops, ranges and Python functions are the host's to record, and a plugin's are refused. A set that changes is"
    " one that depends on the device: it is only asked once.",
)
def kinds_are_a_devices_own(bench: Bench) -> None:
    """The kinds that a plugin claims are a device's own, and always the same.

    Asks `available_activities()` twice and looks for kinds that only the host records.
    """
    claimed = [bench.plugin.profiler.available_activities() for _ in range(2)]
    foreign = sorted(kind.name for kind in claimed[0] & _OF_THE_HOST)
    expect(bool(claimed[0]), expected="at least one kind", found="none")
    expect(not foreign, expected="no kind of the host's", found=foreign)
    expect(claimed[0] == claimed[1], expected="the same kinds each time", found=claimed)
