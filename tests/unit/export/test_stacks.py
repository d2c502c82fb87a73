"""Folded stacks: lines of a small tree, as torch and as flame graphs have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from devprof.errors import UsageError
from devprof.export import METRICS, folded, stacks
from devprof.model import ActivityType
from devprof.store import Trace
from tests.unit.export.traces import kernel, op, trace_of

T = ActivityType


def tree() -> Trace:
    """main > train; step > op > launch; a kernel of 7 us."""
    function = {"type": T.PYTHON_FUNCTION}
    return trace_of(
        [
            op("m.py(1): main", 0, 100_000, **function),
            op("m.py(2): train; step", 10_000, 90_000, parent=0, **function),
            op("aten::mm", 20_000, 50_000, id=3, parent=1),
            op("orLaunch", 25_000, 30_500, id=9, linked=3, parent=2, type=T.PRIVATEUSE1_RUNTIME),
            kernel("mm", 60_000, 67_000, id=9, linked=3, parent=3),
            op("aten::mm", 60_000, 60_400, id=4, parent=1),
            op("outside", 200_000, 201_000, id=5),
        ]
    )


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_functions_around_each_event_stand_on_its_line_with_its_own_microseconds(tmp_path: Path) -> None:
    stacks(tree(), tmp_path / "s.txt")
    assert lines(tmp_path / "s.txt") == [
        "m.py(1):_main 49",
        "m.py(1):_main;m.py(2):_train__step 24",
        "m.py(1):_main;m.py(2):_train__step 5",
    ]


@pytest.mark.parametrize("metric", METRICS[1:])
def test_a_device_metric_gives_the_device_time_of_the_op_in_a_function(metric: str, tmp_path: Path) -> None:
    stacks(tree(), tmp_path / "s.txt", metric)
    assert lines(tmp_path / "s.txt") == ["m.py(1):_main;m.py(2):_train__step 7"] * 2


def test_a_flame_graph_has_each_path_once_in_nanoseconds(tmp_path: Path) -> None:
    folded(tree(), tmp_path / "s.folded")
    assert lines(tmp_path / "s.folded") == [
        "m.py(1): main 20000",
        "outside 1000",
        "m.py(1): main;m.py(2): train_ step 49600",
        "m.py(1): main;m.py(2): train_ step;aten::mm 24900",
        "m.py(1): main;m.py(2): train_ step;aten::mm;orLaunch 5500",
    ]


def test_a_flame_graph_of_device_time_has_the_work_at_its_tips(tmp_path: Path) -> None:
    folded(tree(), tmp_path / "s.folded", "self_device_time_total")
    assert lines(tmp_path / "s.folded") == ["m.py(1): main;m.py(2): train_ step;aten::mm;orLaunch;mm 7000"]


@pytest.mark.parametrize("write", [stacks, folded])
def test_an_unknown_metric_is_refused_and_no_file_is_made(write: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no metric 'time'; there are: self_cpu_time_total"):
        write(tree(), tmp_path / "s.txt", "time")  # type: ignore[operator]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [stacks, folded])
def test_an_empty_trace_makes_an_empty_file(write: object, tmp_path: Path) -> None:
    write(trace_of([], rows=(), places=()), tmp_path / "s.txt")  # type: ignore[operator]
    assert lines(tmp_path / "s.txt") == []
