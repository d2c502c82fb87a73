"""Answers of several ranks as one table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from devprof.analysis.answer import Answer, Column

__all__ = ["by_rank"]


def by_rank(answers: Mapping[int, Answer]) -> Answer:
    """Return the rows of every rank's answer, under a column ``rank``; what a rank has no column for is None there.

    Args:
        answers: the answer of each rank to one question, such as `devprof.pipeline.ranks.per_rank` returns.
    """
    names = dict.fromkeys(name for answer in answers.values() for name in answer.columns)
    columns: dict[str, Column] = {
        "rank": np.repeat(np.array(list(answers), dtype=np.int64), [*map(len, answers.values())])
    }
    for name in names:
        parts = [answer.columns.get(name, [None] * len(answer)) for answer in answers.values()]
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        columns[name] = np.concatenate(arrays) if len(arrays) == len(parts) else [one for part in parts for one in part]
    title = next((answer.title for answer in answers.values()), "nothing")
    notes = tuple(f"rank {rank}: {note}" for rank, answer in answers.items() for note in answer.notes)
    return Answer(f"{title} by rank", columns, notes)
