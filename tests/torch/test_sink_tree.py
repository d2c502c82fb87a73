"""The tree of a torch trace, on columns made by hand: what CUDA's, or any backend's, records look like."""

from __future__ import annotations

from typing import Any

import numpy as np

from devprof.model import ActivityType
from devprof.torch.sink_tree import parents

OP, RANGE, FRAME = ActivityType.CPU_OP, ActivityType.USER_ANNOTATION, ActivityType.PYTHON_FUNCTION
RUNTIME, DRIVER, KERNEL, COPY = (
    ActivityType.CUDA_RUNTIME,
    ActivityType.CUDA_DRIVER,
    ActivityType.CONCURRENT_KERNEL,
    ActivityType.GPU_MEMCPY,
)
NONE = -1


def event(kind: ActivityType, start: int, end: int, **fields: int) -> dict[str, int]:
    return {"type": int(kind), "start": start, "end": end, "row": 0, "id": 0, "linked_event": NONE, **fields}


def tree(*events: dict[str, int]) -> list[int]:
    dtypes: dict[str, Any] = {"type": np.uint8, "flow_type": np.uint8, "flow_start": np.uint8}
    keys = ("type", "start", "end", "row", "id", "linked_event", "flow_id", "flow_type", "flow_start")
    columns = {key: np.array([one.get(key, 0) for one in events], dtype=dtypes.get(key, np.int64)) for key in keys}
    return parents(columns, np.isin(columns["type"], [int(KERNEL), int(COPY)])).tolist()


def test_host_events_stand_below_the_innermost_one_around_them_on_their_thread() -> None:
    assert tree(
        event(RANGE, 0, 100),
        event(OP, 10, 50),
        event(OP, 20, 30),
        event(OP, 20, 30, row=1),
        event(OP, 60, 70),
    ) == [NONE, 0, 1, NONE, 0]


def test_of_events_that_start_together_the_longest_is_the_outer_one() -> None:
    assert tree(event(OP, 0, 10), event(FRAME, 0, 20)) == [1, NONE]


def test_a_launch_stands_below_its_op_wherever_the_clocks_put_it() -> None:
    assert tree(event(OP, 10, 20), event(OP, 12, 14), event(RUNTIME, 19, 23, linked_event=0)) == [NONE, 0, 0]


def test_a_launch_without_an_op_stands_below_what_is_around_it() -> None:
    assert tree(event(FRAME, 0, 50), event(RUNTIME, 10, 20), event(DRIVER, 12, 18)) == [NONE, 0, 1]


def test_device_work_stands_below_the_launch_that_its_arrow_comes_from() -> None:
    arrow = {"flow_id": 7, "flow_type": 2}
    assert tree(
        event(OP, 0, 9),
        event(RUNTIME, 1, 2, id=7, linked_event=0, **arrow, flow_start=1),
        event(KERNEL, 5, 6, row=3, id=7, linked_event=0, **arrow),
        event(COPY, 7, 8, row=3, id=7, linked_event=0, **arrow),
    ) == [NONE, 0, 1, 1]


def test_device_work_without_an_arrow_stands_below_the_call_with_its_number_else_below_its_op() -> None:
    assert tree(
        event(OP, 0, 9),
        event(RUNTIME, 1, 2, id=7, linked_event=0),
        event(KERNEL, 5, 6, row=3, id=7, linked_event=0),
        event(KERNEL, 5, 6, row=3, id=8, linked_event=0),
        event(KERNEL, 5, 6, row=3, id=0),
    ) == [NONE, 0, 1, 0, NONE]


def test_an_arrow_between_forward_and_backward_is_no_launch() -> None:
    arrow = {"flow_id": 7, "flow_type": 1}
    assert tree(
        event(OP, 0, 9, id=7, **arrow, flow_start=1),
        event(KERNEL, 5, 6, row=3, **arrow),
    ) == [NONE, NONE]


def test_a_trace_of_nothing_has_no_tree() -> None:
    assert tree() == []
