"""What linking asks of a host recording."""

from __future__ import annotations

import numpy as np

from devprof.pipeline import known_ops, user_parents
from tests.unit.pipeline.recordings import op, recording, user


def test_every_range_is_a_known_op_whatever_its_scope() -> None:
    host = recording(user("step", 0, 90, 4), op("mm", 10, 20, 9, 4))
    assert known_ops(host)(np.array([1, 4, 5, 9])).tolist() == [False, True, False, True]


def test_without_ranges_no_op_is_known() -> None:
    assert known_ops(recording())(np.array([1])).tolist() == [False]


def test_user_ranges_are_mapped_to_the_user_range_around_them_and_ops_are_none() -> None:
    host = recording(
        user("epoch", 0, 90, 4),
        op("loop", 5, 80, 5, 4),
        user("step", 10, 20, 9, 5, around=4),
        user("loss", 12, 14, 11, 9, around=9),
    )
    assert dict(user_parents(host)) == {4: 0, 9: 4, 11: 9}
