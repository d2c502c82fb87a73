"""Nothing hangs, nothing of a plugin is in the user's trace, and a Ctrl-C costs neither the result nor the next session.

Kineto calls sessions while it holds a lock that Python takes with the GIL held; code that waited for the GIL there would hang
the process. So these tests run under a watchdog: a program that does not end in time has failed.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import toyland
from toyland import Deliver, Program, kernel

from devprof.capture import HeldInterrupt

MOST_FRAMES = 50
"""Frames of devprof and of a plugin that a trace with stacks may hold; draining in Python would leave tens of thousands."""


@pytest.mark.timeout(120)
def test_a_thread_that_hammers_the_profilers_lock_hangs_neither_prepare_nor_stop_nor_export(program: Program) -> None:
    facts = program(
        """
        import pathlib, threading, time
        import toyland, torch, devprof
        from devprof.contract import CorrelationAccess

        runtime = toyland.Runtime()
        plugin = toyland.scripted(script=runtime.script, correlation=CorrelationAccess.PYTHON)
        over = threading.Event()
        hammered = [0, 0]

        def hammer(which, prof):
            while not over.is_set():
                prof.add_metadata_json("key", "1")
                hammered[which] += 1
                time.sleep(1e-5)  # else the other threads wait for the GIL most of the time

        with toyland.alone(plugin):
            with toyland.profile() as prof:
                pass  # torch logs a line for each item that comes before it ever profiled
            threads = [threading.Thread(target=hammer, args=(i, prof), daemon=True) for i in range(2)]
            for thread in threads:
                thread.start()
            emitted = 0
            for _ in range(100):
                with toyland.profile() as prof:
                    toyland.run_in_op(lambda: runtime.launch(works=20))
                emitted += devprof.report_of(prof).ledgers[plugin.label].emitted
                prof.export_chrome_trace("trace.json")
            over.set()
            for thread in threads:
                thread.join(30)
        toyland.say(
            emitted=emitted, hammered=min(hammered), alive=[thread.is_alive() for thread in threads]
        )
        """,
        timeout_s=90,
    )
    assert facts["alive"] == [False, False]
    assert facts["emitted"] == 100 * 21
    assert facts["hammered"] >= 100


@pytest.mark.parametrize("all_threads", [False, True], ids=["this thread", "all threads"])
def test_a_plugin_that_drains_in_python_leaves_a_handful_of_frames_and_none_of_its_ops(
    deliver: Deliver, all_threads: bool
) -> None:
    def busy() -> None:
        (torch.ones(3) @ torch.ones(3)).relu()

    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        for i in range(10_000):
            if i % 1000 == 0:
                busy()
            yield kernel(at=start_ns)

    def noting(result: Any) -> Any:
        return lambda: busy() or result

    session = deliver(
        script,
        body=lambda: torch.zeros(2) + 1,
        faults={
            "start": noting(None),
            "stop": noting(None),
            "errors": noting([]),
            "get_metadata": noting({}),
        },
        options={
            "with_stack": True,
            "experimental_config": torch._C._profiler._ExperimentalConfig(profile_all_threads=all_threads),
        },
    )
    frames = toyland.names(session.trace, "python_function")
    assert frames
    ours = [name for name in frames if "devprof" in name or "toyland" in name or "in script" in name]
    assert len(ours) <= MOST_FRAMES, Counter(ours).most_common(10)
    ops = toyland.names(session.trace, "cpu_op")
    assert "aten::zeros" in ops
    assert not {"aten::matmul", "aten::dot", "aten::relu", "aten::ones"} & set(ops)
    assert session.ledger.emitted == 10_000


def test_frames_of_the_users_block_are_all_there(deliver: Deliver) -> None:
    def named_by_the_user() -> None:
        torch.zeros(2) + 1

    session = deliver(
        lambda start_ns, end_ns: [kernel(at=start_ns)] * 100,
        body=lambda: [named_by_the_user() for _ in range(50)],
        options={"with_stack": True},
    )
    frames = [name for name in toyland.names(session.trace, "python_function") if "named_by_the_user" in name]
    assert len(frames) == 50


INTERRUPTS = """
import os, pathlib, signal, threading, time
import toyland, torch, devprof, devprof.torch.bridge
from devprof.errors import DevprofWarning
import warnings

warnings.simplefilter("ignore", DevprofWarning)
folder = pathlib.Path(".")

def interrupt(after=None):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    return after

def interrupted_in(hook, *, slow=False, schedule=False):
    "Run a session whose plugin's hook gets the user's Ctrl-C, then one without; return what can be said of both."
    def script(start_ns, end_ns):
        yield toyland.kernel(at=start_ns)
        if hook == "process_trace":
            interrupt()
            if slow:
                time.sleep(60)
            yield toyland.kernel(at=start_ns)

    faults = {} if hook == "process_trace" else {hook: lambda: interrupt(None if hook != "errors" else [])}
    plugin = toyland.scripted(script=script, faults=faults)
    options = {"schedule": torch.profiler.schedule(wait=0, warmup=1, active=1)} if schedule else {}
    name = toyland.take_in(plugin)
    prof = toyland.profile(**options)
    seen = "nothing"
    began = time.monotonic()
    try:
        with prof:
            for _ in range(2 if schedule else 1):
                torch.ones(2) + 1
                prof.step()
    except KeyboardInterrupt:
        seen = "KeyboardInterrupt"
    took = time.monotonic() - began
    facts = {"raised": seen, "in_time": took < 20, "flag": bool(torch.autograd.profiler._is_profiler_enabled)}
    if hook not in ("configure", "start"):
        trace = toyland.exported(prof, folder)
        facts["ops"] = "aten::add" in toyland.ops_of(prof)
        facts["kernels"] = len(toyland.slices(trace, "kernel"))
        facts["report"] = devprof.report_of(prof).complete
    plugin.faults, plugin.script = {}, lambda start_ns, end_ns: [toyland.kernel(at=start_ns)]
    with toyland.profile() as prof:
        torch.ones(2) + 1
    facts["next"] = ["aten::add" in toyland.ops_of(prof), len(toyland.slices(toyland.exported(prof, folder), "kernel"))]
    toyland.take_out(name)
    return facts

with toyland.alone():
    toyland.backend()
    devprof.torch.bridge.bridge()  # a first session may have to build it
    found = {
        "process_trace": interrupted_in("process_trace"),
        "stop": interrupted_in("stop"),
        "errors": interrupted_in("errors"),
        "in step": interrupted_in("process_trace", schedule=True),
        "slow": interrupted_in("process_trace", slow=True),
        "configure": interrupted_in("configure"),
        "start": interrupted_in("start"),
    }
toyland.say(**found)
"""


@pytest.mark.timeout(120)
def test_a_ctrl_c_during_a_hook_reaches_the_user_with_the_result_kept_and_the_next_session_whole(
    program: Program,
) -> None:
    facts = program(INTERRUPTS, timeout_s=100)
    common = {"raised": "KeyboardInterrupt", "in_time": True, "flag": False, "next": [True, 1]}
    with_result = {**common, "ops": True, "report": True}
    del facts["exit_code"], facts["stderr"]
    assert facts == {
        "process_trace": {**with_result, "kernels": 2},
        "stop": {**with_result, "kernels": 1},
        "errors": {**with_result, "kernels": 1},
        "in step": {**with_result, "kernels": 2},
        # given up on after a short grace; the plugin is left out for as long as its hook runs on
        "slow": {**with_result, "kernels": 1, "next": [True, 0]},
        "configure": common,
        "start": common,
    }


@pytest.mark.timeout(120)
def test_sixteen_threads_of_ops_leave_balanced_stacks_and_distinct_ids(program: Program) -> None:
    facts = program(
        """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        import toyland, torch, devprof
        from devprof import correlation

        runtime = toyland.Runtime()
        plugin = toyland.scripted(script=runtime.script)
        barrier = threading.Barrier(16)
        depths, unbalanced = [], []

        def work(i):
            barrier.wait(60)
            for _ in range(30):
                with torch.profiler.record_function(f"range {i}"):
                    (torch.ones(8) + 1).sum()
            depths.append(tuple(correlation.depths()))

        with toyland.alone(plugin):
            toyland.run_in_op(lambda: None)
            config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
            for _ in range(3):
                depths.clear()
                with toyland.profile(experimental_config=config) as prof:
                    with ThreadPoolExecutor(16) as pool:
                        list(pool.map(work, range(16)))
                    unbalanced.append(correlation.unbalanced_pops())
                    depths.append(tuple(correlation.depths()))
                events = [e for e in prof.events() if e.name.startswith(("aten::", "range"))]
                ids = [e.id for e in events]
                threads = {e.thread for e in events}
        toyland.say(
            depths=sorted(set(depths)),
            n=len(depths),
            unbalanced=unbalanced,
            distinct=len(ids) == len(set(ids)),
            n_ids=len(ids),
            threads=len(threads),
        )
        """,
        timeout_s=100,
    )
    assert facts["depths"] == [[0, 0]]
    assert facts["n"] == 17
    assert facts["unbalanced"] == [0, 0, 0]
    assert facts["distinct"]
    assert facts["threads"] == 16
    assert facts["n_ids"] >= 16 * 30 * 4


def test_a_held_interrupt_reaches_the_handler_that_was_there_afterwards() -> None:
    noted: list[str] = []
    before = signal.signal(signal.SIGINT, lambda signum, frame: noted.append("handler"))
    try:
        with HeldInterrupt(lambda: noted.append("told")) as interrupt:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            noted.append("end of block")
        assert interrupt.pending
        assert noted == ["told", "told", "end of block", "handler"]
        signal.raise_signal(signal.SIGINT)
        assert noted[-1:] == ["handler"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_held_interrupt_is_raised_as_ctrl_c_once_the_block_is_done() -> None:
    done: list[int] = []

    def block() -> None:
        with HeldInterrupt(lambda: None):
            signal.raise_signal(signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == [1]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_signal_that_python_does_not_handle_is_left_alone(handler: Any) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with HeldInterrupt(lambda: None):
            assert signal.getsignal(signal.SIGINT) is handler
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_on_another_thread_nothing_is_held() -> None:
    before = signal.getsignal(signal.SIGINT)

    def block() -> Any:
        with HeldInterrupt(lambda: None):
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(block).result(60) is before
