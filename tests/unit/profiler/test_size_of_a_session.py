"""A whole session without torch, from the ranges of the recorder and the records of a plugin to the figures: what it keeps."""

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Iterator

import numpy as np
import pytest

import devprof
from devprof.model import ActivityBatch, ActivityType
from devprof.registry import register, unregister
from devprof.store import COLUMNS
from devprof.testing import ScriptedProfiler, plugin_of

KERNELS = [f"kernel {number}" for number in range(10)]


@pytest.fixture
def launched() -> Iterator[array[int]]:
    """Ids of ranges: at the stop the plugin "sized" hands over a kernel of each."""
    ids = array("q")
    register(plugin_of(ScriptedProfiler("sized", script=lambda start_ns, end_ns: [kernels(ids, start_ns)])), "sized")
    yield ids
    unregister("sized")


def kernels(ids: array[int], start_ns: int) -> ActivityBatch:
    number = np.arange(len(ids))
    return ActivityBatch.from_columns(
        KERNELS,
        activity_type=int(ActivityType.CONCURRENT_KERNEL),
        name=number % len(KERNELS),
        start=start_ns + number,
        end=start_ns + number + 1,
        id=number + 1,
        linked=np.array(ids),
    )


def recorded(n: int, launched: array[int]) -> tuple[devprof.profile, int]:
    """Record `n` ranges with a kernel of each; return the profile, and how many of Python's blocks it took to the table."""
    prof = devprof.profile(activities=["cpu", "sized"], host="python")
    gc.collect()
    before = sys.getallocatedblocks()
    with prof:
        for _ in range(n):
            with devprof.record_function("range") as one:
                launched.append(one.id)
    prof.key_averages().table()
    del launched[:]
    gc.collect()
    return prof, sys.getallocatedblocks() - before


def test_no_python_object_is_kept_per_range_or_record(launched: array[int]) -> None:
    recorded(100, launched)  # whatever is made once
    _, few = recorded(1_000, launched)
    prof, many = recorded(50_000, launched)
    assert many - few < 1_000, "an object per event would be 98,000"
    assert len(prof.trace) == 100_000


def test_a_stored_event_takes_less_than_a_hundred_bytes(launched: array[int]) -> None:
    prof, _ = recorded(20_000, launched)
    trace = prof.trace
    assert sum(getattr(trace, name).nbytes for name in COLUMNS) < 100 * len(trace)
    (row,) = [row for row in prof.key_averages() if row.key == "range" and row.device_type == "cpu"]
    assert (row.count, row.device_time_total) == (20_000, 20.0)
    assert prof.report.clean
