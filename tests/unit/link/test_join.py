"""Launches and their work are joined on launch numbers; what leaves with the window leaves the join whole."""

from __future__ import annotations

import numpy as np

from devprof.link import LaunchJoin, join_launches
from devprof.model import ActivityBatch, ActivityType
from tests.cases.linking import call, work


def _join(*batches: list[object]) -> LaunchJoin:
    return join_launches([ActivityBatch.from_activities(batch) for batch in batches])  # type: ignore[arg-type]


def _as_lists(join: LaunchJoin) -> dict[str, object]:
    return {
        "bounds": join.bounds,
        "launch": join.launch.tolist(),
        "leader": join.leader.tolist(),
        "has_work": join.has_work.tolist(),
        "n_shared": join.n_shared,
    }


def test_a_join_goes_over_all_batches() -> None:
    join = _join([work(5, 6, id=2), call(0, 1, id=1)], [], [call(3, 4, id=2), work(7, 8, id=1), work(9, 9)])
    assert _as_lists(join) == {
        "bounds": (0, 2, 2, 5),
        "launch": [2, -1, -1, 1, -1],
        "leader": [2, 1, 2, 1, 4],
        "has_work": [False, True, True, False, False],
        "n_shared": 0,
    }
    assert len(join) == 5


def test_a_wait_is_joined_and_is_no_work() -> None:
    join = _join([call(0, 9, id=1), work(1, 8, id=1, kind=ActivityType.CUDA_SYNC)])
    assert (join.launch.tolist(), join.has_work.tolist()) == ([-1, 0], [False, False])


def test_records_of_other_kinds_are_left_alone_whatever_their_id() -> None:
    join = _join(
        [call(0, 1, id=7), work(2, 3, id=7, kind=ActivityType.OVERHEAD), work(2, 3, id=7, kind=ActivityType.CPU_OP)]
    )
    assert join.launch.tolist() == [-1, -1, -1]
    assert join.leader.tolist() == [0, 1, 2]


def test_work_without_launch_is_led_by_its_first_record() -> None:
    join = _join([work(5, 6, id=9), work(3, 4, id=9)], [work(1, 2, id=9), work(1, 2), work(1, 2)])
    assert join.leader.tolist() == [0, 0, 0, 3, 4]


def test_nothing_joins_nothing() -> None:
    assert _as_lists(_join()) == {"bounds": (0,), "launch": [], "leader": [], "has_work": [], "n_shared": 0}
    assert _as_lists(_join([])) == {"bounds": (0, 0), "launch": [], "leader": [], "has_work": [], "n_shared": 0}


def test_calls_that_share_a_number_are_counted_only_where_there_is_work() -> None:
    join = _join(
        [call(0, 1, id=1), call(2, 3, id=1), call(4, 5, id=1), work(9, 9, id=1), call(0, 1, id=2), call(2, 3, id=2)]
    )
    assert join.n_shared == 2


def test_taking_rows_renumbers_the_join() -> None:
    join = _join([call(0, 1, id=1), call(2, 3, id=2)], [work(4, 5, id=1), work(6, 7, id=2), work(8, 9, id=2)])
    taken = join.take(np.array([False, True, False, True, True]))
    assert _as_lists(taken) == {
        "bounds": (0, 1, 3),
        "launch": [-1, 0, 0],
        "leader": [0, 0, 0],
        "has_work": [True, False, False],
        "n_shared": 0,
    }


def test_a_launch_that_loses_its_work_has_none() -> None:
    join = _join([call(0, 1, id=1), work(4, 5, id=1)])
    assert join.take(np.array([True, False])).has_work.tolist() == [False]


def test_where_a_leader_goes_the_next_record_of_its_number_leads() -> None:
    join = _join([work(0, 1, id=5), work(2, 3, id=6), work(4, 5, id=5), work(6, 7, id=5), work(8, 9, id=6)])
    assert join.take(np.array([False, True, True, True, True])).leader.tolist() == [0, 1, 1, 0]
