"""What a range costs: `record_function` while nobody records, under a decorator, and while a session records.

The peers run in the same process in alternation: an empty context manager class, the bare function, and torch's
`record_function` under its CPU profile. `nvtx.annotate` is shown where it is installed, without a tool attached.
"""

from __future__ import annotations

import gc
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.setting import Gate
from devprof.host import HostRecorder, RecordFunction, quick, record_function
from devprof.host.build_spec import RANGES as RANGES_LIBRARY
from devprof.native import build

__all__ = ["gates"]

RANGES, ROUNDS = 20_000, 21

_SHOWN = {
    "reused": "an active one, the same object each time",
    "op": "an active RecordFunction",
    "nvtx": "nvtx.annotate without a tool",
}


class _Empty:
    """A context manager that keeps its name and does nothing."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> _Empty:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


def _nothing() -> None:
    return None


_decorated = record_function("nothing")(_nothing)


def _loop() -> None:
    for _ in range(RANGES):
        pass


def _empty() -> None:
    for _ in range(RANGES):
        with _Empty("range"):
            pass


def _ours() -> None:
    for _ in range(RANGES):
        with record_function("range"):
            pass


def _reused() -> None:
    named = record_function("range")
    for _ in range(RANGES):
        with named:
            pass


def _nested() -> None:
    with record_function("outer"):
        _ours()


def _ops() -> None:
    for _ in range(RANGES):
        with RecordFunction("op"):
            pass


def _inactive_ops() -> None:
    for _ in range(RANGES):
        with RecordFunction("op", inputs=(), sequence_nr=1):
            pass


def _torchs() -> None:
    for _ in range(RANGES):
        with torch.profiler.record_function("range"):
            pass


def _calls() -> None:
    for _ in range(RANGES):
        _nothing()


def _decorated_calls() -> None:
    for _ in range(RANGES):
        _decorated()


@contextmanager
def _off() -> Iterator[None]:
    yield


@contextmanager
def _in_python() -> Iterator[None]:
    quick.slow_down()
    yield
    quick.quicken()


@contextmanager
def _recording() -> Iterator[None]:
    recorder = HostRecorder()
    recorder.start()
    yield
    recorder.stop()


@contextmanager
def _recording_in_python() -> Iterator[None]:
    with _recording(), _in_python():
        yield


@contextmanager
def _torch_recording() -> Iterator[None]:
    with profile(activities=[ProfilerActivity.CPU]):
        yield


Measured = tuple[Callable[[], None], Callable[[], AbstractContextManager[None]]]


def _times(wanted: dict[str, Measured]) -> dict[str, float]:
    """Return the median ns per range of each, the loop itself taken off; they take turns."""
    took: dict[str, list[int]] = {name: [] for name in wanted}
    for round_number in range(ROUNDS + 1):
        for name, (body, setup) in wanted.items():
            gc.collect()
            with setup():
                began = time.thread_time_ns()
                body()
                spent = time.thread_time_ns() - began
            if round_number:  # the first round warms up
                took[name].append(spent)
    loop = statistics.median(took["loop"])
    return {name: (statistics.median(spent) - loop) / RANGES for name, spent in took.items()}


def _nvtx() -> dict[str, Measured]:
    if importlib.util.find_spec("nvtx") is None:
        return {}
    import nvtx

    def annotated() -> None:
        for _ in range(RANGES):
            with nvtx.annotate("range"):
                pass

    return {"nvtx": (annotated, _off)}


def gates() -> list[Gate]:
    """Measure ranges that nobody records, decorated functions, and ranges in a session; compiled, and in Python alone."""
    build(RANGES_LIBRARY)
    wanted: dict[str, Measured] = {
        "loop": (_loop, _off),
        "empty": (_empty, _off),
        "inactive": (_ours, _off),
        "inactive, Python": (_ours, _in_python),
        "inactive op": (_inactive_ops, _off),
        "call": (_calls, _off),
        "decorated": (_decorated_calls, _off),
        "active": (_ours, _recording),
        "active, Python": (_ours, _recording_in_python),
        "reused": (_reused, _recording),
        "nested": (_nested, _recording),
        "op": (_ops, _recording),
        "torch": (_torchs, _torch_recording),
        **_nvtx(),
    }
    quick.quicken()
    ns = _times(wanted)
    return [*_held(ns), *(Gate(f"ranges: {text}", ns[name], None, "ns") for name, text in _SHOWN.items() if name in ns)]


def _held(ns: dict[str, float]) -> list[Gate]:
    ratios = [
        ("inactive / an empty context manager class", "inactive", "empty", 2.0),
        ("inactive / an empty context manager class, nothing compiled", "inactive, Python", "empty", 2.0),
        ("an inactive RecordFunction / an empty context manager class", "inactive op", "empty", None),
        ("active / torch's in its session", "active", "torch", 0.1),
        ("active inside another / torch's in its session", "nested", "torch", None),
        ("active / torch's in its session, nothing compiled", "active, Python", "torch", None),
    ]
    return [
        Gate(f"ranges: {text}", ns[one] / ns[other], bound, detail=f"{ns[one]:.0f} / {ns[other]:.0f} ns")
        for text, one, other, bound in ratios
    ] + [
        Gate(
            "ranges: what a decorator adds to a call while nobody records",
            ns["decorated"] - ns["call"],
            None,
            "ns",
            detail="nothing where DEVPROF_DISABLE=1 was set when it was decorated",
        )
    ]
