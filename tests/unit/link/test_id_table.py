"""Looking many ids up at once, and which user range is around which."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.link import IdTable, UserParents
from devprof.link.spans import ancestry_of

some_ids = st.integers(-20, 20) | st.integers(-(2**63), 2**63 - 1)


def longs(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


@given(st.lists(some_ids, unique=True, max_size=20), st.lists(some_ids, max_size=20))
def test_every_id_is_found_where_it_stands_and_no_other_one_is(ids: list[int], asked: list[int]) -> None:
    table = IdTable(longs(ids))
    wanted = [ids.index(one) if one != 0 and one in ids else -1 for one in asked + ids]
    assert table.find(longs(asked + ids)).tolist() == wanted


def test_nought_is_no_id_however_often_it_stands() -> None:
    assert IdTable(longs([0, 7, 0, -3])).find(longs([0, 7, -3, 8])).tolist() == [-1, 1, 3, -1]


def test_user_parents_are_a_mapping() -> None:
    parents = UserParents(longs([4, 9, 6]), longs([0, 4, 9]))
    assert dict(parents) == {4: 0, 9: 4, 6: 9}
    assert (parents.get(9), parents.get(5, 0), len(parents)) == (4, 0, 3)
    with pytest.raises(KeyError, match="5"):
        parents[5]


def test_ancestors_are_followed_outwards_to_the_end_even_out_of_the_table() -> None:
    parents = UserParents(longs([4, 9, 6, 7, 20]), longs([2, 4, 9, 9, 0]))
    ids, around = parents.with_ancestors(longs([6, 33]))
    assert dict(zip(ids.tolist(), around.tolist(), strict=True)) == {2: 0, 4: 2, 6: 9, 9: 4, 33: 0}
    assert ids.tolist() == [2, 4, 6, 9, 33]


def test_ranges_that_enclose_each_other_are_visited_once() -> None:
    ids, around = UserParents(longs([1, 2, 3]), longs([2, 3, 1])).with_ancestors(longs([2]))
    assert (ids.tolist(), around.tolist()) == ([1, 2, 3], [2, 3, 1])


@given(
    st.dictionaries(st.integers(1, 12), st.integers(0, 14), max_size=12),
    st.lists(st.integers(1, 14), min_size=1, unique=True),
)
def test_parents_as_columns_give_the_ancestry_that_a_dictionary_gives(
    parents: dict[int, int], users: list[int]
) -> None:
    asked = longs(sorted(users))
    slow, fast = (
        ancestry_of(asked, mapping)
        for mapping in (parents, UserParents(longs(list(parents)), longs(list(parents.values()))))
    )
    for column in ("ids", "parent", "depth"):
        assert getattr(fast, column).tolist() == getattr(slow, column).tolist()
