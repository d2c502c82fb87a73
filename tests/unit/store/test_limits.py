"""Limits as a user gives them; bytes in a file; sums per name."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devprof.errors import UsageError
from devprof.model import ActivityType
from devprof.store import totals as totals_room
from devprof.store.limits import DEFAULT_BYTES, Limits, WhenFull
from devprof.store.spill import SpillFile
from devprof.store.totals import OTHER_NAMES, NameTotal, Totals

OP, USER = ActivityType.CPU_OP, ActivityType.USER_ANNOTATION


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ((None, None, None, None), None),
        ((10, None, None, None), Limits(10)),
        ((None, 64e6, "ring", None), Limits(None, 64_000_000, WhenFull.RING)),
        ((None, None, "ring", None), Limits(None, DEFAULT_BYTES, WhenFull.RING)),
        ((5, None, WhenFull.TOTALS, None), Limits(5, None, WhenFull.TOTALS)),
        ((None, None, "spill", Path("/")), Limits(None, DEFAULT_BYTES, WhenFull.SPILL, "/")),
    ],
)
def test_what_a_user_gives_becomes_limits(given: tuple[Any, Any, Any, Any], limits: Limits | None) -> None:
    assert Limits.given(*given) == limits


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0, None, None, None), "max_records is 0; expected 1 or more"),
        ((None, 10, "ring", None), "max_bytes is 10; expected 65536 or more"),
        (("many", None, None, None), "max_records is 'many'; expected a whole number"),
        ((True, None, None, None), "max_records is True; expected a whole number"),
        ((1.5, None, None, None), "max_records is 1.5; expected a whole number"),
        ((None, None, "circle", None), "expected one of 'stop', 'ring', 'spill', 'totals'"),
        ((None, None, "stop", None), "says nothing without a limit"),
        ((9, None, "ring", "/"), "spill_dir is for when_full='spill', and this is 'ring'"),
        ((9, None, "spill", "/no/such/place"), "there is no such directory"),
        ((9, None, "spill", 7), "spill_dir is 7; expected a directory"),
    ],
)
def test_what_makes_no_limit_is_refused_in_words(given: tuple[Any, Any, Any, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Limits.given(*given)
    assert words in str(caught.value)


def test_what_is_put_into_a_file_is_read_back_and_can_be_changed_there(tmp_path: Path) -> None:
    file = SpillFile(str(tmp_path))
    first = file.put([b"abc", np.arange(5, dtype=np.int64).data, b""])
    second = file.put([bytearray(b"x" * 10_000)])
    first[1].cast("q")[2] = 77
    assert [bytes(first[0]), first[1].cast("q").tolist(), bytes(first[2])] == [b"abc", [0, 1, 77, 3, 4], b""]
    assert bytes(second[0]) == b"x" * 10_000
    assert list(tmp_path.iterdir()) == [], "the file has no name, so nothing is left however the process ends"


def test_a_disk_that_is_full_is_an_error_at_once_and_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SpillFile(str(tmp_path))
    (before,) = file.put([b"before"])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="No space left"):
            file.put([bytes(10 << 20)])
    (after,) = file.put([b"after" * (1 << 20)])
    assert (bytes(before), bytes(after)) == (b"before", b"after" * (1 << 20))


def test_a_large_file_takes_few_file_descriptors(tmp_path: Path) -> None:
    file = SpillFile(str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = [file.put([bytes(100_000)]) for _ in range(500)]
    assert len(kept) == 500
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 8


def _added(totals: Totals, *records: tuple[str, ActivityType, int]) -> Totals:
    names = sorted({name for name, _, _ in records})
    totals.add(
        names,
        np.array([names.index(name) for name, _, _ in records], dtype=np.int32),
        np.array([int(kind) for _, kind, _ in records], dtype=np.uint8),
        np.array([duration for _, _, duration in records], dtype=np.int64),
    )
    return totals


def test_sums_are_those_of_all_records_by_name_and_kind() -> None:
    totals = _added(Totals(), ("a", OP, 5), ("b", OP, 7), ("a", OP, 1), ("a", USER, 100))
    _added(totals, ("c", OP, 2), ("a", OP, 3))
    assert totals.rows("host") == [
        NameTotal("host", "a", USER, 1, 100, 100, 100),
        NameTotal("host", "a", OP, 3, 9, 1, 5),
        NameTotal("host", "b", OP, 1, 7, 7, 7),
        NameTotal("host", "c", OP, 1, 2, 2, 2),
    ]
    assert [row.mean_ns for row in totals.rows("host")] == [100.0, 3.0, 7.0, 2.0]


def test_ticks_become_nanoseconds_at_the_clocks_rate() -> None:
    (row,) = _added(Totals(), ("a", OP, 5), ("a", OP, 2)).rows("dev", ns_per_tick=10.0)
    assert row == NameTotal("dev", "a", OP, 2, 70, 20, 50)


def test_names_that_never_repeat_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals_room, "MAX_NAMES", 3)
    totals = Totals()
    for number in range(10):
        _added(totals, (f"step {number}", OP, 1 + number), ("step 0", OP, 0))
    found = {row.name: (row.count, row.total_ns) for row in totals.rows("host")}
    assert found == {
        "step 0": (11, 1),
        "step 1": (1, 2),
        "step 2": (1, 3),
        OTHER_NAMES: (7, 4 + 5 + 6 + 7 + 8 + 9 + 10),
    }


def test_a_copy_does_not_change_with_its_original() -> None:
    totals = _added(Totals(), ("a", OP, 5))
    copy = totals.copied()
    totals.merge(_added(Totals(), ("a", OP, 9), ("b", OP, 1)))
    assert [(row.name, row.count, row.max_ns) for row in copy.rows("host")] == [("a", 1, 5)]
    assert [(row.name, row.count, row.max_ns) for row in totals.rows("host")] == [("a", 2, 9), ("b", 1, 1)]
