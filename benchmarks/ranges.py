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
from contextlib import contextmanager
from types import TracebackType

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.setting import Gate
from devprof.host import HostRecorder, RecordFunction, record_function

__all__ = ["gates"]

RANGES, ROUNDS = 20_000, 21


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
def _recording() -> Iterator[None]:
    recorder = HostRecorder()
    recorder.start()
    yield
    recorder.stop()


@contextmanager
def _torch_recording() -> Iterator[None]:
    with profile(activities=[ProfilerActivity.CPU]):
        yield


Setup = Callable[[], "contextmanager[None]"]  # type: ignore[type-arg]


def _times(wanted: dict[str, tuple[Callable[[], None], object]]) -> dict[str, float]:
    """Return the median ns per range of each, the loop itself taken off; they take turns."""
    took: dict[str, list[int]] = {name: [] for name in wanted}
    for round_number in range(ROUNDS + 1):
        for name, (body, setup) in wanted.items():
            gc.collect()
            with setup():  # type: ignore[operator]
                began = time.thread_time_ns()
                body()
                spent = time.thread_time_ns() - began
            if round_number:  # the first round warms up
                took[name].append(spent)
    loop = statistics.median(took["loop"])
    return {name: (statistics.median(spent) - loop) / RANGES for name, spent in took.items()}


def _nvtx() -> dict[str, tuple[Callable[[], None], object]]:
    if importlib.util.find_spec("nvtx") is None:
        return {}
    import nvtx

    def annotated() -> None:
        for _ in range(RANGES):
            with nvtx.annotate("range"):
                pass

    return {"nvtx": (annotated, _off)}


def gates() -> list[Gate]:
    """Measure ranges that nobody records, decorated functions, and ranges in a session."""
    ns = _times(
        {
            "loop": (_loop, _off),
            "empty": (_empty, _off),
            "inactive": (_ours, _off),
            "call": (_calls, _off),
            "decorated": (_decorated_calls, _off),
            "active": (_ours, _recording),
            "reused": (_reused, _recording),
            "nested": (_nested, _recording),
            "op": (_ops, _recording),
            "torch": (_torchs, _torch_recording),
            **_nvtx(),
        }
    )
    per = {name: f"{spent:.0f} ns" for name, spent in ns.items()}
    shown = [
        Gate("ranges: an active one used again", ns["reused"], None, "ns", "the same object each time"),
        Gate("ranges: an active one inside another", ns["nested"], None, "ns"),
        Gate("ranges: an active RecordFunction", ns["op"], None, "ns"),
        Gate("ranges: a decorated function while nobody records, added", ns["decorated"] - ns["call"], None, "ns"),
    ]
    if "nvtx" in ns:
        shown.append(Gate("ranges: nvtx.annotate without a tool", ns["nvtx"], None, "ns"))
    return [
        Gate(
            "ranges: inactive / empty class",
            ns["inactive"] / ns["empty"],
            2.0,
            detail=f"{per['inactive']} / {per['empty']}",
        ),
        Gate(
            "ranges: active / torch's in its session",
            ns["active"] / ns["torch"],
            0.1,
            detail=f"{per['active']} / {per['torch']}",
        ),
        *shown,
    ]
