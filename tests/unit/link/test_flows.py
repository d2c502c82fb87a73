"""An arrow has one start and at least one end, whoever drew it."""

from __future__ import annotations

import numpy as np

from devprof.link import join_launches
from devprof.link.flows import Arrows, draw_arrows
from devprof.model import ActivityBatch, Flow, GenericTraceActivity, kLinkAsyncCpuGpu, kLinkFwdBwd
from tests.cases.linking import call, work


def _arrows(*records: GenericTraceActivity) -> Arrows:
    batches = [ActivityBatch.from_activities(records)]
    return draw_arrows(batches, join_launches(batches), 100 + np.arange(len(records)), 500)


def _ends(arrows: Arrows) -> list[tuple[int, int, int]]:
    columns = (arrows.flow_id, arrows.flow_type, arrows.flow_start)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_an_arrow_from_a_launch_has_the_launchs_number() -> None:
    arrows = _arrows(call(0, 1), call(0, 1, id=7), work(2, 3, id=7), work(4, 5, id=7))
    assert _ends(arrows) == [(0, 0, 0), (101, kLinkAsyncCpuGpu, 1), (102, 2, 0), (103, 2, 0)]
    assert (arrows.next_id, arrows.n_duplicate_starts, arrows.n_loose_ends) == (500, 0, 0)


def test_a_plugins_own_arrows_are_numbered_densely_from_the_next_free_number() -> None:
    flows = [Flow(key, kLinkFwdBwd, start) for key in (9, 2**40, -3) for start in (True, False)]
    arrows = _arrows(*(call(i, i, flow=flow) for i, flow in enumerate(flows)))
    assert _ends(arrows) == [
        (500, kLinkFwdBwd, 1), (500, kLinkFwdBwd, 0),
        (501, kLinkFwdBwd, 1), (501, kLinkFwdBwd, 0),
        (502, kLinkFwdBwd, 1), (502, kLinkFwdBwd, 0),
    ]  # fmt: skip
    assert arrows.next_id == 503


def test_an_arrow_may_have_many_ends_of_the_plugins_own() -> None:
    start = call(0, 1, flow=Flow(5, 2, True))
    arrows = _arrows(start, *(work(2 + i, 3 + i, flow=Flow(5, 2, False)) for i in range(3)))
    assert _ends(arrows) == [(500, 2, 1), (500, 2, 0), (500, 2, 0), (500, 2, 0)]


def test_records_in_any_order_are_matched_by_time() -> None:
    flows = {10: True, 20: False, 30: True, 40: False}
    times = [40, 10, 30, 20]
    arrows = _arrows(*(call(time, time, flow=Flow(5, 1, flows[time])) for time in times))
    by_time = dict(zip(times, arrows.flow_id.tolist(), strict=True))
    assert by_time[10] == by_time[20] != by_time[30] == by_time[40]


def test_a_start_and_an_end_at_one_time_are_one_arrow() -> None:
    arrows = _arrows(work(10, 11, flow=Flow(5, 2, False)), call(10, 11, flow=Flow(5, 2, True)))
    assert _ends(arrows) == [(500, 2, 0), (500, 2, 1)]


def test_an_explicit_end_whose_launch_has_another_key_goes_by_its_own_key() -> None:
    arrows = _arrows(
        call(0, 1, id=7, flow=Flow(5, 2, True)),
        call(2, 3, flow=Flow(6, 2, True)),
        work(4, 5, id=7, flow=Flow(6, 2, False)),
    )
    assert _ends(arrows) == [(0, 0, 0), (500, 2, 1), (500, 2, 0)]
    assert (arrows.n_duplicate_starts, arrows.n_loose_ends) == (0, 1)


def test_three_starts_in_a_row_before_one_end_are_one_arrow_and_two_duplicates() -> None:
    starts = [call(i, i, flow=Flow(5, 2, True)) for i in range(3)]
    arrows = _arrows(*starts, work(9, 9, flow=Flow(5, 2, False)))
    assert _ends(arrows) == [(500, 2, 1), (0, 0, 0), (0, 0, 0), (500, 2, 0)]
    assert (arrows.n_duplicate_starts, arrows.n_loose_ends) == (2, 0)


def test_starts_without_any_end_are_loose_and_not_duplicates() -> None:
    arrows = _arrows(call(0, 1, flow=Flow(5, 2, True)), call(2, 3, flow=Flow(5, 2, True)))
    assert (arrows.flow_id.tolist(), arrows.n_duplicate_starts, arrows.n_loose_ends) == ([0, 0], 0, 2)


def test_no_records_have_no_arrows() -> None:
    assert _ends(_arrows()) == []
