"""Everything at once, for as long as wanted, under a watchdog: does anything ever wait for good?

    python tests/hunt/deadlock_hunt.py --host python --seconds 300
    python tests/hunt/deadlock_hunt.py --host torch --seconds 300

Sixteen threads run ops; others collect garbage, add metadata, take snapshots, and start profiles that are refused or get their
turn; the main thread records one session after the other, with changing options. The GIL changes hands every 20 us. A session
that is not over within ``--patience`` seconds has hung: every thread's stack is printed and the process ends with 1. At the end
one line of JSON says what was done; what is wrong with a session's account is an error.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import devprof
from devprof import correlation, registry
from devprof.contract import CorrelationAccess
from devprof.errors import DevprofError, SessionError
from devprof.model import ActivityType, GenericTraceActivity
from devprof.testing import ScriptedProfiler, plugin_of

N_OP_THREADS = 16
KINDS = (CorrelationAccess.PYTHON, CorrelationAccess.READ)

done: Counter[str] = Counter()
"""What was done, by kind; counts of threads that add at the same time may be a few short."""
over = threading.Event()


class Device:
    """A device whose launches take the current ids along; its plugin hands them over."""

    def __init__(self) -> None:
        self._records: list[GenericTraceActivity] = []
        self._lock = threading.Lock()

    def launch(self) -> None:
        """Record one kernel, 100 ns long, under the current op."""
        op, user = correlation.current()
        now = time.time_ns()
        kernel = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", now, now + 100, linked=op, linked_user=user)
        with self._lock:
            if len(self._records) < 10_000:
                self._records.append(kernel)

    def script(self, start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        """Hand over what there is."""
        with self._lock:
            records, self._records = self._records, []
        return records


def op_of(host: str, device: Device) -> Callable[[], None]:
    """Return an op that launches."""
    if host == "python":

        def op() -> None:
            with devprof.record_function("range"), devprof.RecordFunction("op"):
                device.launch()

        return op
    import torch

    def torch_op() -> None:
        with torch.profiler.record_function("range"):
            torch.ones(8).neg()
            device.launch()

    return torch_op


def options_of(host: str, rng: random.Random) -> dict[str, Any]:
    """Return options for one session."""
    flags = ("with_stack", "record_shapes", "profile_memory")
    options: dict[str, Any] = {flag: rng.random() < 0.3 for flag in flags}
    if host == "python" and rng.random() < 0.5:
        options |= {"when_full": "ring", "max_records": 2000, "with_stack": False}  # of calls there is no ring
    # no profile_all_threads: torch alone crashes where it stops while other threads are inside ops (~TorchOpStorage, 2.13)
    return options


def session(host: str, rng: random.Random, running: list[Any], op: Callable[[], None]) -> None:
    """Record one session, and look at all of it."""
    prof = devprof.profile(host=host, activities=["cpu", "hunted 0", "hunted 1"], **options_of(host, rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            prof.start()
        except SessionError:  # the other thread has its turn
            done["refused"] += 1
            return
        running[:] = [prof]
        for _ in range(rng.randrange(50)):
            op()
        prof.stop()
    running.clear()
    done["sessions"] += 1
    done["events"] += len(prof.trace)
    for name, ledger in prof.report.ledgers.items():
        assert ledger.produced == ledger.emitted + ledger.dropped.total() + ledger.rejected.total(), name
        assert not ledger.failures, ledger.failures
    prof.key_averages()


def forever(kind: str, body: Callable[[], object], pause_s: float = 0.0) -> threading.Thread:
    """Return a started thread that does `body` until all is over."""

    def run() -> None:
        while not over.is_set():
            body()
            done[kind] += 1
            if pause_s:
                over.wait(pause_s)

    thread = threading.Thread(target=run, name=f"hunt-{kind}", daemon=True)
    thread.start()
    return thread


def on_running(running: list[Any], call: Callable[[Any], object]) -> Callable[[], None]:
    """Return what calls the profile that runs, where one does; a refusal is an answer."""

    def body() -> None:
        for prof in list(running):
            try:
                call(prof)
            except DevprofError:
                done["refused"] += 1

    return body


def intruder(host: str, running: list[Any]) -> None:
    """Start a profile from another thread; stop it where it got its turn."""
    prof = devprof.profile(host=host, activities=["cpu"])
    try:
        prof.start()
    except SessionError:
        done["refused"] += 1
        return
    prof.stop()
    done["intruders"] += 1


def garbage() -> None:
    """Make cycles, and have them collected."""
    for _ in range(50):
        one: list[Any] = []
        one.append(one)
    gc.collect()


def prepare(host: str) -> Device:
    """Take in two plugins: one that reads ids, one that is told of them."""
    if host == "torch":
        import torch

        torch.utils.rename_privateuse1_backend("hunted")
    device = Device()
    for number, access in enumerate(KINDS):
        name = f"hunted {number}"
        script = device.script if number == 0 else lambda start_ns, end_ns: ()
        profiler = ScriptedProfiler(label=name, script=script, correlation=access)
        registry.register(plugin_of(profiler), name)
        # a list per op would fill the memory; the calls are what is wanted
        profiler.pushed, profiler.pushed_user = _Nothing(), _Nothing()
    return device


class _Nothing(list[int]):
    def append(self, item: int) -> None:
        """Keep nothing."""


def main() -> None:
    """Hunt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", choices=["python", "torch"], default="python")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    sys.setswitchinterval(2e-5)
    device, running = prepare(wanted.host), []
    op, rng = op_of(wanted.host, device), random.Random(wanted.seed)
    faulthandler.dump_traceback_later(wanted.patience, exit=True)
    session(
        wanted.host, rng, running, op
    )  # the first one in a process loads libraries, and Kineto wants it on this thread
    threads = [forever("ops", op, pause_s=0.005) for _ in range(N_OP_THREADS)]
    threads += [
        forever("collections", garbage, pause_s=0.02),
        forever("metadata", on_running(running, lambda prof: prof.add_metadata_json("key", "1")), pause_s=0.002),
        forever("snapshots", on_running(running, lambda prof: prof.snapshot(seconds=1.0)), pause_s=0.02),
        forever("tries", lambda: intruder(wanted.host, running), pause_s=0.05),
    ]
    end = time.monotonic() + wanted.seconds
    while time.monotonic() < end:
        session(wanted.host, rng, running, op)
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback_later(wanted.patience, exit=True)
    over.set()
    for thread in threads:
        thread.join(wanted.patience)
    faulthandler.cancel_dump_traceback_later()
    alive = [thread.name for thread in threads if thread.is_alive()]
    print(json.dumps({**done, "alive": alive}))


if __name__ == "__main__":
    os.environ["DEVPROF_BLOCK_PLUGINS"] = ",".join(one.name for one in entry_points(group=registry.ENTRY_POINT_GROUP))
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    main()
