"""Records are reduced to one interval per range and place, and ranges around ranges follow their parents."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from devprof.link.spans import Spans, ancestry_of, spans_of_work, with_enclosing

Row = tuple[int, int, int, int]


def _columns(rows: list[Row]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))


def _spans(rows: list[Row], parents: Mapping[int, int] | None = None, *, enclosing: bool = False) -> set[Row]:
    spans, ancestry = spans_of_work(*_columns(rows), parents or {})
    if enclosing:
        spans = with_enclosing(spans, ancestry)
    columns = (ancestry.ids[spans.user], spans.place, spans.start, spans.end)
    found = [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    assert len(found) == len({row[:2] for row in found}) == len(spans)
    return set(found)


@pytest.mark.parametrize("scale", [1, 2**40], ids=["dense", "sparse"])
def test_a_span_goes_from_the_first_start_to_the_last_end_of_its_range_on_its_place(scale: int) -> None:
    rows = [(3, 0, 10, 20), (4, 0, 21, 22), (3, 0, 5, 7), (3, 1, 0, 90), (3, 0, 12, 40), (4, 0, 1, 2)]
    scaled = [(user * scale, place, start, end) for user, place, start, end in rows]
    assert _spans(scaled) == {(3 * scale, 0, 5, 40), (3 * scale, 1, 0, 90), (4 * scale, 0, 1, 22)}


def test_an_enclosing_range_covers_the_ranges_inside_it_on_each_of_their_places() -> None:
    parents = {5: 4, 4: 3, 6: 3}
    rows = [(5, 0, 10, 20), (6, 1, 0, 5), (4, 0, 30, 31)]
    assert _spans(rows, parents, enclosing=True) == {
        (5, 0, 10, 20),
        (4, 0, 10, 31),
        (3, 0, 10, 31),
        (6, 1, 0, 5),
        (3, 1, 0, 5),
    }


def test_many_ranges_on_many_places_are_grouped_by_sorting_alike() -> None:
    rng = np.random.default_rng(3)
    rows = [
        (int(u), int(p), int(s), int(s + d))
        for u, p, s, d in zip(
            rng.integers(1, 300, 2000), rng.integers(0, 10**9, 2000), rng.integers(0, 99, 2000), rng.integers(0, 9, 2000),
            strict=True,
        )
    ]  # fmt: skip
    wanted: dict[tuple[int, int], tuple[int, int]] = {}
    for user, place, start, end in rows:
        first, last = wanted.get((user, place), (start, end))
        wanted[user, place] = (min(first, start), max(last, end))
    assert _spans(rows) == {(*key, *value) for key, value in wanted.items()}


def test_ancestry_holds_ranges_with_work_and_all_around_them() -> None:
    ancestry = ancestry_of(np.array([5, 9]), {5: 4, 4: 2, 2: 0, 7: 5})
    assert (ancestry.ids.tolist(), ancestry.parent.tolist(), ancestry.depth.tolist()) == (
        [2, 4, 5, 9],
        [-1, 0, 1, -1],
        [0, 1, 2, 0],
    )


@pytest.mark.parametrize("parents", [{3: 3}, {3: 4, 4: 3}, {5: 3, 3: 4, 4: 3}])
def test_ranges_that_enclose_each_other_in_a_circle_are_cut_and_end(parents: dict[int, int]) -> None:
    ancestry = ancestry_of(np.array(sorted(parents)), parents)
    assert sorted(ancestry.ids.tolist()) == sorted(parents)
    assert ancestry.depth.min() == 0
    spans = Spans(np.arange(len(parents)), *(np.zeros(len(parents), dtype=np.int64),) * 3)
    assert len(with_enclosing(spans, ancestry)) == len(parents)


def test_a_thousand_nested_ranges_are_followed() -> None:
    parents = {i: i - 1 for i in range(2, 1001)}
    assert _spans([(1000, 0, 5, 6)], parents, enclosing=True) == {(i, 0, 5, 6) for i in range(1, 1001)}
