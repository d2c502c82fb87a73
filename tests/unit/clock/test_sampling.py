"""A burst of readings, each between two readings of the host's clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from devprof.clock import sample
from devprof.contract import ClockSample
from devprof.errors import UsageError


def _counting(start: int, step: int) -> Callable[[], int]:
    numbers = itertools.count(start, step)
    return lambda: next(numbers)


def test_each_reading_is_bracketed_and_they_come_in_order() -> None:
    assert sample(_counting(7, 1), _counting(1000, 10), n=3) == [
        ClockSample(1000, 7, 1010),
        ClockSample(1020, 8, 1030),
        ClockSample(1040, 9, 1050),
    ]


def test_five_readings_are_taken_unless_said_otherwise() -> None:
    assert len(sample(_counting(0, 1), _counting(0, 1))) == 5


def test_ticks_from_numpy_become_plain_numbers() -> None:
    (one,) = sample(lambda: np.uint64(2**40), _counting(0, 1), n=1)  # type: ignore[arg-type, return-value]
    assert (one.device_ticks, type(one.device_ticks)) == (2**40, int)


@pytest.mark.parametrize("ticks", [1.5, None, "7"])
def test_a_clock_that_gives_no_whole_ticks_is_refused(ticks: object) -> None:
    with pytest.raises(TypeError, match=f"must give whole ticks, found {type(ticks).__name__}"):
        sample(lambda: ticks, _counting(0, 1))  # type: ignore[arg-type, return-value]


def test_an_empty_burst_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one reading, found n=0"):
        sample(_counting(0, 1), _counting(0, 1), n=0)
