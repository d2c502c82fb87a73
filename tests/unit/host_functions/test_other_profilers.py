"""Another tool at the same hook is reported and left alone."""

from __future__ import annotations

import cProfile
import sys
import threading
from collections.abc import Iterator

import pytest

from devprof.host.functions import function_tracer
from tests.unit.host_functions.trees import Traced, traced

ON_311 = pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on tools do not share one hook")
ON_312 = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")


def leaf() -> int:
    return len("leaf")


def other(*_: object) -> None:
    """A profiler that somebody else has put in."""


@pytest.fixture(autouse=True)
def _no_profiler_is_left() -> Iterator[None]:
    yield
    sys.setprofile(None)
    threading.setprofile(None)


@ON_311
@pytest.mark.usefixtures("core")
def test_a_profiler_that_was_there_first_stays_and_the_notes_say_so() -> None:
    sys.setprofile(other)
    found = traced(leaf)
    assert sys.getprofile() is other
    assert list(found.rows("leaf")) == []
    assert [note for note in found.tracer.notes if "Another profiler holds" in note]


@ON_311
@pytest.mark.usefixtures("core")
def test_a_profiler_that_came_meanwhile_stays_and_the_notes_say_so() -> None:
    tracer = function_tracer()
    tracer.start()
    leaf()
    sys.setprofile(other)
    leaf()
    batch = tracer.stop()
    assert sys.getprofile() is other
    assert len(list(Traced(tracer, batch).rows("leaf"))) == 1
    assert [note for note in tracer.notes if "Another profiler replaced" in note]


@ON_311
def test_a_profiler_for_new_threads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_FUNCTION_TRACER", "python")
    threading.setprofile(other)
    found = traced(leaf)
    assert threading.getprofile() is other
    assert [note for note in found.tracer.notes if "threading.setprofile" in note]


@ON_311
def test_a_profiler_that_puts_back_what_it_found_gives_the_thread_back(
    core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program() -> None:
        before = sys.getprofile()
        sys.setprofile(other)
        sys.setprofile(before)
        leaf()

    found = traced(program)
    assert found.tree() == ["program", "  getprofile()", "  leaf", "    len()"]
    assert core in ("native", "setprofile")
    assert sys.getprofile() is None


@ON_312
@pytest.mark.usefixtures("core")
def test_another_tool_keeps_its_id_and_is_named() -> None:
    sys.monitoring.use_tool_id(4, "somebody")
    try:
        found = traced(leaf)
        assert sys.monitoring.get_tool(4) == "somebody"
    finally:
        sys.monitoring.free_tool_id(4)
    assert found.tree("leaf") == ["leaf", "  len()"]
    assert "Also watching through sys.monitoring, and slowing what is recorded: somebody." in found.tracer.notes


@ON_312
@pytest.mark.usefixtures("core")
def test_without_a_free_id_nothing_is_recorded_and_the_notes_say_so() -> None:
    for tool in range(6):
        sys.monitoring.use_tool_id(tool, f"tool{tool}")
    try:
        found = traced(leaf)
        assert [sys.monitoring.get_tool(tool) for tool in range(6)] == [f"tool{tool}" for tool in range(6)]
    finally:
        for tool in range(6):
            sys.monitoring.free_tool_id(tool)
    assert len(found.batch) == 0
    assert "Every id of sys.monitoring is taken by another tool; function calls are not recorded." in found.tracer.notes


@ON_312
@pytest.mark.usefixtures("core")
def test_a_tool_that_takes_our_id_keeps_it() -> None:
    tracer = function_tracer()
    tracer.start()
    leaf()
    (ours,) = (tool for tool in range(6) if sys.monitoring.get_tool(tool))
    sys.monitoring.free_tool_id(ours)
    sys.monitoring.use_tool_id(ours, "somebody")
    try:
        batch = tracer.stop()
        assert sys.monitoring.get_tool(ours) == "somebody"
    finally:
        sys.monitoring.set_events(ours, 0)
        for event in range(17):
            sys.monitoring.register_callback(ours, 1 << event, None)
        sys.monitoring.free_tool_id(ours)
    assert len(list(Traced(tracer, batch).rows("leaf"))) == 1
    assert [note for note in tracer.notes if "took devprof's id" in note]


@ON_312
@pytest.mark.usefixtures("core")
def test_a_callback_put_in_place_of_ours_stays() -> None:
    seen = []
    tracer = function_tracer()
    tracer.start()
    (ours,) = (tool for tool in range(6) if sys.monitoring.get_tool(tool))
    sys.monitoring.register_callback(ours, sys.monitoring.events.PY_START, lambda code, _: seen.append(code.co_name))
    tracer.stop()
    leaf()
    sys.monitoring.set_events(ours, 0)
    sys.monitoring.register_callback(ours, sys.monitoring.events.PY_START, None)
    sys.monitoring.free_tool_id(ours)
    assert "leaf" in seen
    assert [note for note in tracer.notes if "put its own callbacks" in note]


@ON_312
@pytest.mark.usefixtures("core")
def test_cprofile_and_the_old_interface_work_beside_it() -> None:
    def program() -> None:
        with cProfile.Profile():
            leaf()
        sys.setprofile(other)
        leaf()
        sys.setprofile(None)

    assert [line for line in traced(program).tree() if line == "  leaf"] == ["  leaf", "  leaf"]
