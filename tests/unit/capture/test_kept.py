"""What is kept of a plugin's records: the beginning, the end, all of it in a file, sums."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.capture import PluginLedger, kept
from devprof.capture.kept import Kept
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind
from devprof.model.reasons import LET_GO, OVER_LIMIT
from devprof.store.limits import Limits, WhenFull
from devprof.store.spill import SpillFile
from devprof.store.totals import NameTotal

KERNEL = ActivityType.CONCURRENT_KERNEL


def batch(first: int, count: int, clock: str = "unix_ns", name: str = "k", **columns: Any) -> ActivityBatch:
    """Return kernels that start at first, first + 1, ... and last 2."""
    start = np.arange(first, first + count)
    metadata = {
        "grid": MetadataColumn(MetadataKind.INT_LIST, np.stack([start, start], axis=1)),
        "bytes": MetadataColumn(MetadataKind.INT, start, start % 2 == 0),
    }
    given_columns = {"activity_type": int(KERNEL), "name": 0, "start": start, "end": start + 2, **columns}
    return ActivityBatch.from_columns([name], **given_columns, metadata=metadata, clock=clock)


def keeping(limits: Limits, **options: Any) -> tuple[Kept, PluginLedger]:
    ledger = PluginLedger("demo")
    clock = itertools.count(1)
    return Kept(ledger, {KERNEL}, limits, now_ns=lambda: next(clock), **options), ledger


def starts(found: Kept) -> list[int]:
    return [int(start) for one in found.batches for start in one.start]


def test_stop_keeps_the_first_records_and_counts_the_others_as_lost() -> None:
    found, ledger = keeping(Limits(150))
    assert not found.is_full(149)
    found.add(batch(1, 100))
    found.add(batch(101, 100))
    found.add(batch(201, 100))
    assert starts(found) == list(range(1, 151))
    assert ledger.dropped == {OVER_LIMIT: 150}
    assert found.is_full(0)
    assert not ledger.clean


def test_a_limit_of_bytes_counts_metadata_too() -> None:
    found, ledger = keeping(Limits(None, 100_000))
    for first in range(1, 5001, 500):
        found.add(batch(first, 500))
    n = len(starts(found))
    assert starts(found) == list(range(1, n + 1))
    assert 100_000 // 130 < n < 100_000 // 75
    assert ledger.dropped == {OVER_LIMIT: 5000 - n}


def test_a_ring_keeps_the_last_records_and_says_from_when_on() -> None:
    found, ledger = keeping(Limits(1000, None, WhenFull.RING))
    for first in range(1, 10_001, 100):
        found.add(batch(first, 100))
    n = len(starts(found))
    assert starts(found) == list(range(10_001 - n, 10_001))
    assert 900 < n <= 1000
    assert found.let_go_through == {"unix_ns": 10_000 - n}
    assert ledger.dropped == {LET_GO: 10_000 - n}
    assert ledger.clean, "what a ring lets go is no loss"


def test_one_delivery_that_is_more_than_a_ring_leaves_its_latest_records() -> None:
    found, ledger = keeping(Limits(1000, None, WhenFull.RING))
    late_first = batch(1, 50_000)
    found.add(late_first.take(np.arange(50_000)[::-1]))
    assert sorted(starts(found)) == list(range(50_001 - len(starts(found)), 50_001))
    assert 900 < len(starts(found)) <= 1000
    assert ledger.dropped == {LET_GO: 50_000 - len(starts(found))}


def test_of_two_clocks_the_older_time_goes_first() -> None:
    ticks = {"device": lambda tick: tick - 1_000_000, "unix_ns": lambda ns: ns}
    found, _ = keeping(Limits(1000, None, WhenFull.RING), roughly_ns=lambda clock, value: ticks[clock](value))
    for first in range(1, 10_001, 1000):  # first all launches, then all kernels, as a plugin hands them over
        found.add(batch(first, 1000))
        found.add(batch(1_000_000 + first, 1000, clock="device"))
    by_clock = {
        clock: sorted(int(start) for one in found.batches for start in one.start if one.clock == clock)
        for clock in ticks
    }
    assert by_clock["unix_ns"][-1] == 10_000
    assert by_clock["device"][-1] == 1_010_000
    assert abs(by_clock["device"][0] - 1_000_000 - by_clock["unix_ns"][0]) <= 64
    assert 450 < len(by_clock["unix_ns"]) < 550


def test_small_deliveries_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_BATCHES", 20)
    found, ledger = keeping(Limits(1000, None, WhenFull.RING))
    for first in range(1, 101):
        found.add(batch(first, 1))
    assert starts(found) == list(range(81, 101))
    assert ledger.dropped == {LET_GO: 80}


def test_what_no_trace_can_hold_takes_no_room() -> None:
    found, ledger = keeping(Limits(10))
    found.add(batch(1, 10, activity_type=int(ActivityType.CPU_OP)))
    found.add(batch(1, 10, end=0))
    found.add(batch(1, 10))
    assert starts(found) == list(range(1, 11))
    assert ledger.rejected == {"activity type reserved for the host": 10, "negative duration": 10}
    assert ledger.dropped == {}


def test_what_is_spilled_comes_back_as_it_was(tmp_path: Path) -> None:
    plain, _ = keeping(Limits(10**9))
    found, ledger = keeping(Limits(50, None, WhenFull.SPILL, str(tmp_path)))
    for first in range(1, 1001, 100):
        for one in (plain, found):
            one.add(batch(first, 100, name=f"k{first}", linked=first, device=1))
    assert found._n_spilled == 10
    assert [one.activities() for one in found.batches] == [one.activities() for one in plain.batches]
    assert ledger.dropped == {}
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_loses_what_comes_behind_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(SpillFile, "put", full)
    found, ledger = keeping(Limits(250, None, WhenFull.SPILL))
    for first in range(1, 1001, 100):
        found.add(batch(first, 100))
    assert starts(found) == list(range(1, 301))
    assert ledger.dropped == {OVER_LIMIT: 700}
    assert ledger.errors == ["cannot spill to a file: No space left on device"]


def test_sums_are_over_what_went_and_what_is_there() -> None:
    found, ledger = keeping(Limits(100, None, WhenFull.TOTALS))
    for first in range(1, 1001, 50):
        found.add(batch(first, 50, name="even" if first % 100 == 1 else "odd", clock="device"))
    assert found.all_totals()["device"].rows("demo") == [
        NameTotal("demo", "even", KERNEL, 500, 1000, 2, 2),
        NameTotal("demo", "odd", KERNEL, 500, 1000, 2, 2),
    ]
    assert len(starts(found)) + ledger.dropped[LET_GO] == 1000
    assert keeping(Limits(100, None, WhenFull.RING))[0].all_totals() == {}


def test_what_came_since_a_time_is_told_from_what_came_before() -> None:
    found, _ = keeping(Limits(1000))
    for first in (1, 11, 21):
        found.add(batch(first, 10))  # at 1, 2 and 3
    late, n_early = found.since(2)
    assert ([int(one.start[0]) for one in late], n_early) == ([11, 21], 10)
    assert found.oldest_ns == 1


def test_what_is_taken_is_kept_no_longer() -> None:
    found, _ = keeping(Limits(10))
    found.add(batch(1, 10))
    assert [len(one) for one in found.take()] == [10]
    assert (found.batches, found.is_full(0)) == ([], False)


@given(
    deliveries=st.lists(st.tuples(st.integers(1, 500), st.integers(0, 300)), max_size=20),
    most=st.integers(1, 600),
    when_full=st.sampled_from(WhenFull),
)
def test_the_account_closes_whatever_is_delivered_and_however_much_is_kept(
    deliveries: list[tuple[int, int]], most: int, when_full: WhenFull
) -> None:
    found, ledger = keeping(Limits(most, None, when_full))
    for first, count in deliveries:
        found.add(batch(first, count))
    n = len(starts(found))
    assert n + ledger.dropped.total() == sum(count for _, count in deliveries)
    if when_full is WhenFull.SPILL:
        assert ledger.dropped == {}
    else:
        assert n <= most
    if when_full in (WhenFull.RING, WhenFull.TOTALS) and ledger.dropped:
        assert (
            max([0, *starts(found)]) == max([0, *(first + count - 1 for first, count in deliveries if count)]) or n == 0
        )
