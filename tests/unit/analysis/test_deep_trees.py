"""Sums over trees of any height."""

from __future__ import annotations

from typing import Any

import pytest

from devprof.analysis import key_averages


@pytest.mark.parametrize("height", [1, 2, 8, 9, 10, 40])
def test_work_counts_to_everything_around_its_op_however_deep_it_is(made: Any, height: int) -> None:
    for level in range(height):
        made.op(f"op {level}", level, 1000 - level, id=level + 1)
    made.op("beside", 2000, 2001, id=height + 1)
    made.kernel("a", 3000, 3010, linked=height)
    made.kernel("b", 3010, 3013, linked=1)
    rows = {row.key: row.device_time_total_ns for row in key_averages(made.build()) if row.device_type == "cpu"}
    inside = {f"op {level}": 10 for level in range(1, height)}
    assert rows == {"op 0": 13, **inside, "beside": 0}
