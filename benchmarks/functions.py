"""What recording a function call costs, beside the interpreter's hook with an empty callback in Python, and viztracer.

Every set-up runs the same loops in alternation in one process: calls of an empty Python function, and of a C function. The
figure is what a call (enter and leave) costs more than with no hook. Runs without torch.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.setting import Gate
from devprof.host.functions import FunctionTracer, function_tracer

__all__ = ["gates"]

CALLS, ROUNDS = 50_000, 15
_EVENTS = ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "CALL", "C_RETURN", "C_RAISE")


def _leaf() -> None:
    return None


def _python_calls() -> int:
    leaf = _leaf
    began = time.thread_time_ns()
    for _ in range(CALLS):
        leaf()
    return time.thread_time_ns() - began


def _c_calls() -> int:
    size, nothing = len, ()
    began = time.thread_time_ns()
    for _ in range(CALLS):
        size(nothing)
    return time.thread_time_ns() - began


@contextmanager
def _bare() -> Iterator[None]:
    yield


@contextmanager
def _empty_callback() -> Iterator[None]:
    monitoring: Any = vars(sys).get("monitoring")
    if monitoring is None:
        sys.setprofile(lambda frame, event, argument: None)
        yield
        sys.setprofile(None)
        return
    monitoring.use_tool_id(monitoring.PROFILER_ID, "empty")
    events = [getattr(monitoring.events, name) for name in _EVENTS]
    for event in events:
        monitoring.register_callback(monitoring.PROFILER_ID, event, lambda *_: None)
    monitoring.set_events(monitoring.PROFILER_ID, sum(events))
    yield
    monitoring.set_events(monitoring.PROFILER_ID, 0)
    for event in events:
        monitoring.register_callback(monitoring.PROFILER_ID, event, None)
    monitoring.free_tool_id(monitoring.PROFILER_ID)


@contextmanager
def _devprof(core: str) -> Iterator[FunctionTracer]:
    before = os.environ.get("DEVPROF_FUNCTION_TRACER")
    os.environ["DEVPROF_FUNCTION_TRACER"] = core
    try:
        tracer = function_tracer()
    finally:
        os.environ.pop("DEVPROF_FUNCTION_TRACER")
        if before is not None:
            os.environ["DEVPROF_FUNCTION_TRACER"] = before
    tracer.start()
    yield tracer
    tracer.stop()


@contextmanager
def _viztracer() -> Iterator[None]:
    from viztracer import VizTracer

    tracer = VizTracer(verbose=0, tracer_entries=4 * CALLS)
    tracer.start()
    yield
    tracer.stop()
    tracer.clear()


def _set_ups() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {"bare": _bare, "empty": _empty_callback}
    with _devprof("") as tracer:
        in_use = tracer.core
    if in_use == "native":
        found["native"] = lambda: _devprof("native")
    found["python"] = lambda: _devprof("python")
    if importlib.util.find_spec("viztracer"):
        found["viztracer"] = _viztracer
    return found


def _added(measure: Callable[[], int], set_ups: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return what a call costs more than bare, ns."""
    took: dict[str, list[int]] = {name: [] for name in set_ups}
    for round_number in range(ROUNDS + 1):
        for name, set_up in set_ups.items():
            gc.collect()
            with set_up():
                spent = measure()
            if round_number:  # the first round warms up
                took[name].append(spent)
    medians = {name: statistics.median(times) / CALLS for name, times in took.items()}
    return {name: taken - medians["bare"] for name, taken in medians.items() if name != "bare"}


def _stop(calls: int) -> float:
    """Return what `stop()` costs per call, ns."""
    tracer = function_tracer()
    tracer.start()
    for _ in range(calls):
        _leaf()
    began = time.thread_time_ns()
    tracer.stop()
    return (time.thread_time_ns() - began) / calls


def gates() -> list[Gate]:
    """Measure both kinds of calls, and the stop."""
    set_ups = _set_ups()
    in_use = next(name for name in ("native", "python") if name in set_ups)
    found = []
    for kind, measure in (("Python", _python_calls), ("C", _c_calls)):
        added = _added(measure, set_ups)
        for core in (name for name in ("native", "python", "viztracer") if name in added):
            detail = f"{added[core]:.0f} / {added['empty']:.0f} ns added"
            bound = 2.0 if core == in_use else None
            found.append(
                Gate(f"{kind} call, {core} / empty callback", added[core] / added["empty"], bound, detail=detail)
            )
        if in_use == "native":
            detail = f"{added['native']:.0f} / {added['python']:.0f} ns added"
            found.append(
                Gate(f"{kind} call, native / Python core", added["native"] / added["python"], 1.0, detail=detail)
            )
    few, many = (statistics.median(_stop(calls) for _ in range(3)) for calls in (10_000, 1_000_000))
    found.append(Gate("stop per call, of 1M / of 10k", many / few, 1.3, detail=f"{many:.0f} / {few:.0f} ns"))
    return found
