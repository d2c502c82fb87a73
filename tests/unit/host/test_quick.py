"""The compiled way through a range is the same as the one in Python, and the two can be exchanged."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator

import pytest

from devprof.errors import BuildError, UsageError
from devprof.host import HostRecorder, quick, record_function
from devprof.host.gate import BLOCK_SIZE
from tests.unit.host.recordings import Range, recording


@pytest.fixture(autouse=True)
def _built(built: str) -> Iterator[None]:
    if built:
        pytest.skip(built)
    as_before = quick.quicken if quick.is_quick() else quick.slow_down
    yield
    as_before()


def test_a_range_may_be_entered_one_way_and_left_the_other() -> None:
    first, second = record_function("first"), record_function("second")
    with recording() as session:
        quick.quicken()
        first.__enter__()
        quick.slow_down()
        second.__enter__()
        quick.quicken()
        second.__exit__(None, None, None)
        quick.slow_down()
        first.__exit__(None, None, None)
    assert session.ranges == [Range("first", 2, 5), Range("second", 3, 4, "first", "first")]


def test_times_are_those_of_the_clock_that_python_reads() -> None:
    recorder = HostRecorder()
    recorder.start()
    before = time.perf_counter_ns()
    with record_function("range"):
        inside = time.perf_counter_ns()
    after = time.perf_counter_ns()
    ranges = recorder.stop().ranges
    assert before <= ranges.start[0] <= inside <= ranges.end[0] <= after


def test_a_range_is_made_of_every_form_of_its_arguments() -> None:
    class Named(record_function):
        __slots__ = ()

    made = [record_function("a"), record_function(name="a"), record_function("a", None), Named("a")]
    made += [record_function("a", "b"), record_function("a", args="b")]
    assert [(r.name, r.args, r.block) for r in made] == [("a", None, None)] * 4 + [("a", "b", None)] * 2
    assert type(made[3]) is Named
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        record_function()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        record_function("a", color="red")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="a range's name is text"):
        record_function(b"a")  # type: ignore[arg-type]


def test_a_clock_that_raises_is_heard() -> None:
    readings = [3, 1]  # for the start and the stop of the recorder

    def ticks() -> int:
        if len(readings) == 1 and is_entering:
            raise OSError("no clock")
        return readings.pop()

    is_entering = [1]
    with recording(clock=ticks):
        with pytest.raises(OSError, match="no clock"):
            record_function("range").__enter__()
        is_entering.clear()


def test_nothing_is_kept_and_nothing_freed_too_often() -> None:
    name = "a name of its own"
    with recording() as session:
        with record_function(name):
            pass
        gc.collect()
        counted = (sys.getrefcount(name), sys.getrefcount(session.ticks))
        outer = record_function("outer")
        for _ in range(3 * BLOCK_SIZE):
            with record_function(name), outer, outer:
                pass
        gc.collect()
        blocks = len(session.recorder._everything[0].blocks)
        # each block has the clock; the name is in the queue's table once, whoever uses it
        expected = (counted[0], counted[1] + blocks - 1)
        found = (sys.getrefcount(name), sys.getrefcount(session.ticks))
        assert found == expected


@pytest.mark.parametrize(("wanted", "expected"), [("python", False), ("native", True), ("", True)])
def test_the_switch_chooses_the_way(wanted: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.slow_down()
    monkeypatch.setattr(quick, "_is_chosen", False)
    monkeypatch.setenv(quick.SWITCH, wanted)
    with recording() as session, record_function("range"):
        assert quick.is_quick() is expected
    assert session.ranges == [Range("range", 2, 3)]


def test_a_switch_that_says_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_is_chosen", False)
    monkeypatch.setenv(quick.SWITCH, "fast")
    with pytest.raises(UsageError, match="DEVPROF_RANGES is 'fast', expected 'python' or 'native'"):
        HostRecorder().start()


@pytest.mark.parametrize("wanted", ["", "native"])
def test_where_nothing_is_built_python_does_it_unless_that_is_forbidden(
    wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise BuildError("nothing is built")

    quick.slow_down()
    monkeypatch.setattr(quick, "_is_chosen", False)
    monkeypatch.setattr(quick, "quicken", fails)
    monkeypatch.setenv(quick.SWITCH, wanted)
    if wanted:
        with pytest.raises(BuildError, match="nothing is built"):
            HostRecorder().start()
    else:
        with recording() as session, record_function("range"):
            pass
        assert session.ranges == [Range("range", 2, 3)]
