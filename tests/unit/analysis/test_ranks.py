"""Answers of several ranks make one table."""

from __future__ import annotations

import numpy as np

from devprof.analysis import Answer
from devprof.analysis.ranks import by_rank


def test_every_row_says_its_rank_and_what_a_rank_does_not_know_is_none() -> None:
    answers = {
        4: Answer("steps", {"step": np.array([1, 2]), "busy cuda:0_ns": [5, 6]}, ("short",)),
        7: Answer("steps", {"step": np.array([1]), "busy cuda:1_ns": [8]}),
        9: Answer("steps", {"step": np.array([], dtype=np.int64)}),
    }
    whole = by_rank(answers)
    assert list(whole) == [
        {"rank": 4, "step": 1, "busy cuda:0_ns": 5, "busy cuda:1_ns": None},
        {"rank": 4, "step": 2, "busy cuda:0_ns": 6, "busy cuda:1_ns": None},
        {"rank": 7, "step": 1, "busy cuda:0_ns": None, "busy cuda:1_ns": 8},
    ]
    assert (whole.title, whole.notes) == ("steps by rank", ("rank 4: short",))


def test_of_no_ranks_there_is_an_empty_table() -> None:
    assert list(by_rank({})) == []
