"""What the conformance kit needs of torch: ops on threads that torch chooses, and the legacy profiler."""

from __future__ import annotations

import functools
import itertools
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.profiler import record_function

__all__ = ["LegacyTimes", "all_threads", "legacy_times", "prepare", "run_forked", "run_on_threads"]


_functions: dict[int, Callable[[], object]] = {}
_numbers = itertools.count(1)
_library: Any = None


class LegacyTimes(NamedTuple):
    """Device times of a range and of the two ranges inside it, microseconds."""

    outer_us: float
    first_us: float
    second_us: float


def all_threads() -> Any:
    """Return the option of torch.profiler that records every thread's ops."""
    return torch._C._profiler._ExperimentalConfig(profile_all_threads=True)


def run_on_threads(*bodies: Callable[[], object]) -> None:
    """Run each body in an op, on a thread of its own; the threads run one after the other."""
    for body in bodies:
        thread = threading.Thread(target=_in_op, args=(body,))
        thread.start()
        thread.join()


def prepare() -> None:
    """Define the op and compile what forks, so that neither is in a trace."""
    _forked()


def run_forked(*bodies: Callable[[], object]) -> None:
    """Run each body in an op that `torch.jit.fork` gives to a thread of torch's own."""
    x = torch.zeros(1)
    for body in bodies:
        _forked()(x, _noted(body))


def legacy_times(device: str, work: Callable[[], object], n: int) -> list[LegacyTimes]:
    """Profile ranges within ranges with torch's legacy profiler, and return their device times.

    Args:
        device: the renamed backend.
        work: makes the device work; run once in each inner range.
        n: how many outer ranges.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.profiler.profile(use_device=device) as prof:
            for _ in range(n):
                with record_function("kit outer"):
                    for name in ("kit first", "kit second"):
                        with record_function(name):
                            work()
        by_name: dict[str, list[float]] = {}
        for event in prof.function_events:
            by_name.setdefault(event.name, []).append(float(event.device_time_total))
    columns = [by_name.get(f"kit {name}", []) for name in ("outer", "first", "second")]
    return [LegacyTimes(*row) for row in zip(*columns, strict=True)]


def _in_op(body: Callable[[], object]) -> None:
    _define()
    torch.ops.devprof_kit.run(torch.zeros(1), _noted(body))


def _noted(body: Callable[[], object]) -> int:
    number = next(_numbers)
    _functions[number] = body
    return number


def _run(x: torch.Tensor, number: int) -> torch.Tensor:
    _functions.pop(number)()
    return x.clone()


@functools.cache
def _define() -> None:
    global _library
    _library = torch.library.Library("devprof_kit", "DEF")  # type: ignore[no-untyped-call]  # torch's own
    _library.define("run(Tensor x, int number) -> Tensor")
    _library.impl("run", _run, "CompositeExplicitAutograd")


@functools.cache
def _forked() -> Any:
    _define()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scripting is deprecated; forking is what is tried here
        made = torch.jit.CompilationUnit(
            """
            def inner(x: Tensor, number: int) -> Tensor:
                return torch.ops.devprof_kit.run(x, number)

            def forked(x: Tensor, number: int) -> Tensor:
                future = torch.jit.fork(inner, x, number)
                return torch.jit.wait(future)
            """
        )
    return made.forked
