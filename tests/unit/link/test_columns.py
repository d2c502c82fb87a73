"""Records are classed by kind alone, and ids are numbered the same way whether they are dense or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.link.columns import (
    LAUNCH,
    OTHER,
    SYNC,
    WORK,
    Longs,
    bounds_of,
    classes_of,
    codes_of,
    codes_of_rows,
    distinct,
    longs,
    on_device,
    per_distinct,
    split,
    stitch,
)
from devprof.model import ActivityBatch, ActivityType

T = ActivityType
DENSE = [5, 7, 5, 9, 5]
SPARSE = [5, 2**62, 5, -(2**62), 5]


def _batch(*kinds: ActivityType, id: int = 0) -> ActivityBatch:
    n = len(kinds)
    return ActivityBatch.from_columns(
        ["x"], activity_type=[int(kind) for kind in kinds], name=[0] * n, start=range(n), end=range(n), id=id
    )


def _array(values: list[int]) -> Longs:
    return np.array(values, dtype=np.int64)


def test_every_kind_has_its_class_and_its_side() -> None:
    classes = classes_of([_batch(*T)]).tolist()
    sides = on_device([_batch(*T)]).tolist()
    named = {"launch": LAUNCH, "work": WORK, "sync": SYNC}
    found = {name: {kind for kind, of in zip(T, classes, strict=True) if of == code} for name, code in named.items()}
    assert found == {
        "launch": {
            T.CUDA_RUNTIME, T.CUDA_DRIVER, T.MTIA_RUNTIME, T.GLOW_RUNTIME, T.XPU_RUNTIME, T.XPU_DRIVER,
            T.PRIVATEUSE1_RUNTIME, T.PRIVATEUSE1_DRIVER,
        },
        "work": {T.CONCURRENT_KERNEL, T.GPU_MEMCPY, T.GPU_MEMSET, T.MTIA_CCP_EVENTS, T.HPU_OP},
        "sync": {T.CUDA_SYNC, T.XPU_SYNC},
    }  # fmt: skip
    on_host = {kind for kind, device in zip(T, sides, strict=True) if not device}
    assert on_host == found["launch"] | {
        T.CPU_OP, T.USER_ANNOTATION, T.EXTERNAL_CORRELATION, T.CPU_INSTANT_EVENT, T.PYTHON_FUNCTION, T.OVERHEAD,
    }  # fmt: skip


def test_a_kind_of_a_later_kineto_is_other() -> None:
    later = ActivityBatch.from_columns(["x"], activity_type=[200], name=[0], start=[0], end=[0])
    assert classes_of([later]).tolist() == [OTHER]


def test_batches_are_laid_end_to_end_and_cut_again() -> None:
    batches = [_batch(T.GPU_MEMCPY, T.GPU_MEMSET, id=3), _batch(), _batch(T.CPU_OP, id=4)]
    bounds = bounds_of(batches)
    assert bounds == (0, 2, 2, 3)
    assert longs(batches, "id").tolist() == [3, 3, 4]
    assert [part.tolist() for part in split(longs(batches, "id"), bounds)] == [[3, 3], [], [4]]


def test_one_batchs_column_is_not_copied() -> None:
    batch = _batch(T.GPU_MEMCPY)
    assert np.shares_memory(stitch([batch], "start"), batch.start)


def test_no_batches_are_no_rows() -> None:
    assert (bounds_of([]), stitch([], "start").tolist(), classes_of([]).tolist()) == ((0,), [], [])


@pytest.mark.parametrize("values", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_equal_values_have_equal_codes_and_unknown_ones_none(values: list[int]) -> None:
    others = [values[1], 5, 6, values[3], 2**63 - 1, -(2**63)]
    codes, other_codes = codes_of(_array(values), _array(others))
    assert codes[0] == codes[2] == codes[4]
    assert len({codes[0], codes[1], codes[3]}) == 3
    assert other_codes[[0, 1, 3]].tolist() == codes[[1, 0, 3]].tolist()
    assert {*other_codes[[2, 4, 5]].tolist()}.isdisjoint(codes.tolist())
    assert codes.min() >= 0


def test_no_value_is_known_among_none() -> None:
    codes, other_codes = codes_of(_array([]), _array([1, 2]))
    assert (codes.tolist(), other_codes.tolist()) == ([], [-1, -1])


def test_codes_stay_small_whatever_the_values() -> None:
    rng = np.random.default_rng(1)
    for values in (
        rng.integers(-(2**63), 2**63 - 1, 1000),
        rng.integers(0, 10_000, 1000),
        _array([-(2**63), 2**63 - 1]),
    ):
        (codes,) = codes_of(values)
        assert codes.max() < 8 * (len(values) + 128)


@pytest.mark.parametrize("values", [DENSE, SPARSE, []], ids=["dense", "sparse", "none"])
def test_distinct_values_come_ascending(values: list[int]) -> None:
    assert distinct(_array(values)).tolist() == sorted(set(values))


@pytest.mark.parametrize("values", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_a_question_is_asked_once_per_distinct_value(values: list[int]) -> None:
    asked: list[list[int]] = []

    def ask(some: Longs) -> np.ndarray:
        asked.append(some.tolist())
        return some == 5

    assert per_distinct(_array(values), ask).tolist() == [value == 5 for value in values]
    assert asked == [sorted(set(values))]


def test_nothing_is_not_asked_about() -> None:
    def ask(some: Longs) -> np.ndarray:
        raise AssertionError("asked")

    assert per_distinct(_array([]), ask).tolist() == []


@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 7, -(2**62), 2**62, 2**56 | 7])] * 3), max_size=30))
def test_rows_have_one_number_where_all_their_columns_are_equal(rows: list[tuple[int, int, int]]) -> None:
    columns = [_array([row[at] for row in rows]) for at in range(3)]
    codes = codes_of_rows(*columns).tolist()
    pairs = list(zip(codes, rows, strict=True))
    assert all((one == other) == (row == another) for one, row in pairs for other, another in pairs)
