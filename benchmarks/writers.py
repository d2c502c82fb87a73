"""What the benchmarks of the two exporters share: which writers of events there are, and taking one of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from benchmarks.setting import cpu_us
from devprof.errors import BuildError
from devprof.export.build_spec import EXPORT
from devprof.native import build

__all__ = ["REPEATS", "median_us", "taking", "writers"]

REPEATS = 5


def writers() -> list[str]:
    """Return the writers that can be measured here: the native one where it is built or can be, and Python's."""
    try:
        build(EXPORT)
    except BuildError as error:
        print(f"     no native writer here: {error}")
        return ["python"]
    return ["native", "python"]


@contextmanager
def taking(switch: str, writer: str) -> Iterator[None]:
    """Let an exporter's switch say `writer` meanwhile."""
    with mock.patch.dict("os.environ", {switch: writer}):
        yield


def median_us(write: Callable[[], object]) -> float:
    """Return the median cost of some runs, us of processor time."""
    return statistics.median(cpu_us(write) for _ in range(REPEATS))
