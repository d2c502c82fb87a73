"""Start, stop, what is open then, threads, limits, forks."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import devprof
from devprof.errors import BuildError, SessionError, UsageError
from devprof.host.functions import HOST_TICKS, FunctionTracer, function_tracer, native_core
from devprof.model import ActivityType
from tests.unit.host_functions.trees import Traced, traced


def leaf() -> int:
    return len("leaf")


def open_and_left(start: Callable[[], None]) -> None:
    start()
    leaf()


@pytest.mark.usefixtures("core")
def test_frames_open_at_the_start_begin_there_and_frames_open_at_the_stop_end_there() -> None:
    def program() -> Traced:
        tracer = function_tracer()
        open_and_left(tracer.start)
        leaf()
        return Traced(tracer, tracer.stop())

    before = time.perf_counter_ns()
    found = program()
    after = time.perf_counter_ns()
    assert found.tree() == ["program", "  open_and_left", "    leaf", "      len()", "  leaf", "    len()"]
    assert found.unfinished()[-1] == "program"
    assert "open_and_left" not in found.unfinished()
    (outer,), (inner,) = found.rows("program"), found.rows("open_and_left")
    assert before <= found.batch.start[outer] == found.batch.start[inner] == min(found.batch.start)
    assert max(found.batch.end) == found.batch.end[outer] <= after


@pytest.mark.usefixtures("core")
def test_the_line_of_a_frame_open_at_the_start_is_the_one_it_was_at() -> None:
    def program() -> Traced:
        tracer = function_tracer()
        tracer.start()
        return Traced(tracer, tracer.stop())

    found = program()
    (row,) = found.rows("program")
    assert found.batch.strings[found.batch.name[row]].endswith(
        f"host_functions/test_life.py({program.__code__.co_firstlineno + 2}): program"
    )


@pytest.mark.usefixtures("core")
def test_records_are_python_functions_of_this_thread_in_the_order_of_entering() -> None:
    batch = traced(leaf).batch
    assert set(batch.activity_type.tolist()) == {ActivityType.PYTHON_FUNCTION}
    assert set(batch.thread_id.tolist()) == {threading.get_native_id()}
    assert batch.clock == HOST_TICKS == "perf_counter_ns"
    assert batch.start.tolist() == sorted(batch.start.tolist())
    assert batch.metadata["Python id"].values.tolist() == list(range(1, len(batch) + 1))


@pytest.mark.usefixtures("core")
def test_calls_lie_inside_the_call_around_them() -> None:
    found = traced(lambda: [leaf() for _ in range(100)])
    start, end = found.batch.start, found.batch.end
    inside = [(row, parent) for row, parent in enumerate(found.parents()) if parent >= 0]
    assert len(inside) >= 200
    assert all(start[parent] <= start[row] <= end[row] <= end[parent] for row, parent in inside)


def test_another_clock_is_read_for_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEVPROF_FUNCTION_TRACER", raising=False)
    numbers = itertools.count(100)
    found = traced(leaf, ticks=lambda: next(numbers))
    (row,) = found.rows("leaf")
    (inner,) = found.rows("len()")
    times = [found.batch.start[row], found.batch.start[inner], found.batch.end[inner], found.batch.end[row]]
    assert [int(one) - int(times[0]) for one in times] == [0, 1, 2, 3]
    assert found.tracer.core != "native"


@pytest.mark.usefixtures("core")
def test_threads_that_begin_and_end_meanwhile_are_recorded_under_their_name() -> None:
    native_ids = []

    def work() -> None:
        native_ids.append(threading.get_native_id())
        leaf()

    def program() -> None:
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()

    found = traced(program)
    assert found.tree("work")[0] == "work"
    assert "  leaf" in found.tree("work")
    (row,) = found.rows("work")
    assert found.batch.thread_id[row] == native_ids[0]
    assert found.tracer.threads[native_ids[0]] == "worker"


@pytest.mark.usefixtures("core")
def test_a_thousand_threads_are_kept_apart() -> None:
    def program() -> None:
        for _ in range(50):
            threads = [threading.Thread(target=leaf) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    found = traced(program)
    names, parents = found.names(), found.parents()
    assert [names[parents[row]] for row in found.rows("leaf")] == ["run"] * 1000
    assert not [note for note in found.tracer.notes if "did not end" in note]


def test_threads_that_ran_before_are_recorded_where_they_can_be(reaches_running_threads: bool) -> None:
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        leaf()
        done.set()
        go.wait()

    thread = threading.Thread(target=work, name="before")
    thread.start()

    def program() -> None:
        go.set()
        done.wait()
        thread.join()

    found = traced(program)
    if not reaches_running_threads:
        assert list(found.rows("work")) == []
        assert "threads that ran already" in found.tracer.notes[0]
        return
    (row,) = found.rows("work")
    assert found.batch.start[row] == min(found.batch.start)
    assert found.tracer.threads[int(found.batch.thread_id[row])] == "before"
    assert "  leaf" in found.tree("work")
    assert "work" not in found.unfinished()


def test_a_thread_that_only_waits_is_shown_as_open_all_the_time(reaches_running_threads: bool) -> None:
    ready, go = threading.Event(), threading.Event()

    def waiting() -> None:
        ready.set()
        go.wait()

    thread = threading.Thread(target=waiting)
    thread.start()
    ready.wait()
    found = traced(leaf)
    go.set()
    thread.join()
    assert ("waiting" in found.unfinished()) is reaches_running_threads


@pytest.mark.usefixtures("core")
def test_another_thread_may_stop_the_tracer() -> None:
    tracer = function_tracer()
    tracer.start()
    leaf()
    stopped = []
    thread = threading.Thread(target=lambda: stopped.append(tracer.stop()))
    thread.start()
    thread.join()
    leaf()  # the hook of this thread takes itself out here, at the latest
    leaf()
    assert sys.getprofile() is None
    assert len(list(Traced(tracer, stopped[0]).rows("leaf"))) == 1


@pytest.mark.usefixtures("core")
def test_after_the_stop_no_hook_is_left() -> None:
    traced(leaf)
    traced(leaf)
    assert (sys.getprofile(), threading.getprofile()) == (None, None)
    if sys.version_info >= (3, 12):
        assert [sys.monitoring.get_tool(tool) for tool in range(6)] == [None] * 6


@pytest.mark.usefixtures("core")
def test_calls_beyond_the_limit_are_counted_and_open_ones_still_end() -> None:
    def program() -> None:
        for _ in range(5000):
            leaf()

    everything = traced(program)
    found = traced(program, max_events=1000)
    beyond = found.tracer.counts["beyond max_events"]
    assert found.tree()[:3] == ["program", "  leaf", "    len()"]
    assert len(found.tree()) <= 1000 < len(everything.tree()) == 10_001
    assert len(found.tree()) + beyond >= 10_001
    assert "program" not in found.unfinished()
    assert f"{beyond} function calls came after the limit of max_events and are left out." in found.tracer.notes


@pytest.mark.usefixtures("core")
def test_no_python_object_is_kept_for_an_event() -> None:
    calls, blocks = 100_000, []

    def program() -> None:
        for _ in range(calls):
            leaf()
        blocks.append(sys.getallocatedblocks())

    before = sys.getallocatedblocks()
    traced(program)
    assert blocks[0] - before < calls  # four events each; the cores in Python keep objects of the latest few thousand


def own(source: str) -> dict[str, Callable[..., object]]:
    """Functions as if devprof had them."""
    path = str(Path(devprof.__file__).parent / "a_module.py")
    names: dict[str, Callable[..., object]] = {}
    exec(compile(textwrap.dedent(source), path, "exec"), names)
    return names


@pytest.mark.usefixtures("core")
def test_devprofs_own_calls_are_left_out_and_what_they_call_of_the_users_is_not() -> None:
    wrapped = own(
        """
        import textwrap
        def wrapped(function):
            len("")
            textwrap.dedent("")
            function()
        """
    )["wrapped"]

    def program() -> None:
        wrapped(leaf)

    found = traced(program)
    assert found.tree() == ["program", "  leaf", "    len()"]
    assert found.tracer.counts["devprof's own"] >= 3


@pytest.mark.usefixtures("core")
def test_c_functions_of_devprofs_own_classes_are_left_out() -> None:
    class Ours(list[int]):
        __module__ = "devprof.host.ranges"

    class Theirs(list[int]):
        __module__ = "devprofiler"

    def program() -> None:
        Ours().append(1)
        Theirs().append(1)

    found = traced(program)
    assert found.tree() == ["program", "  Theirs.append()"]


@pytest.mark.usefixtures("core")
def test_devprofs_own_threads_are_left_out() -> None:
    def program() -> None:
        thread = threading.Thread(target=leaf, name="devprof-drain")
        thread.start()
        thread.join()

    found = traced(program)
    assert list(found.rows("leaf")) == []
    assert found.tracer.counts["devprof's own"] >= 2


@pytest.mark.usefixtures("core")
def test_only_one_tracer_records_at_a_time_and_each_once() -> None:
    first, second = function_tracer(), function_tracer()
    with pytest.raises(SessionError, match="not recording"):
        first.stop()
    first.start()
    with pytest.raises(SessionError, match="recorded already"):
        second.start()
    with pytest.raises(SessionError, match="started before"):
        first.start()
    first.stop()
    with pytest.raises(SessionError, match="not recording"):
        first.stop()
    second.start()
    second.stop()


@pytest.mark.usefixtures("core")
def test_starting_under_load_comes_back_every_time() -> None:
    enough = threading.Event()

    def load() -> None:
        while not enough.is_set():
            leaf()

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        found = [traced(leaf, max_events=20_000) for _ in range(10)]
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert [note for one in found for note in one.tracer.notes if "did not end" in note] == []
    assert all("leaf" in one.names() for one in found)


def test_an_unknown_core_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_FUNCTION_TRACER", "fast")
    with pytest.raises(UsageError, match=r"DEVPROF_FUNCTION_TRACER is 'fast'; expected 'native', 'python' or nothing"):
        function_tracer()


def test_without_a_native_core_python_records_and_the_notes_say_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    native_core.native_library.cache_clear()
    monkeypatch.setenv("DEVPROF_CACHE", str(tmp_path))
    monkeypatch.setenv("DEVPROF_BUILD", "never")
    monkeypatch.delenv("DEVPROF_FUNCTION_TRACER", raising=False)
    found = traced(leaf)
    assert found.tree("leaf") == ["leaf", "  len()"]
    assert [note for note in found.tracer.notes if "recorded in Python" in note and "devprof build functions" in note]
    monkeypatch.setenv("DEVPROF_FUNCTION_TRACER", "native")
    with pytest.raises(BuildError, match="devprof build functions"):
        function_tracer()


def in_another_process(source: str) -> str:
    """Return what a program prints; it must end with exit code 0."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_compiler_that_fails_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def fails(spec: object) -> None:
        asked.append(spec)
        raise BuildError("the compiler says no")

    monkeypatch.setattr(native_core, "build", fails)
    monkeypatch.delenv("DEVPROF_BUILD", raising=False)
    monkeypatch.delenv("DEVPROF_FUNCTION_TRACER", raising=False)
    caches = (native_core.native_library, native_core._build_failure)
    for cache in caches:
        cache.cache_clear()
    try:
        for _ in range(3):
            tracer = function_tracer()
            assert tracer.core != "native"
            assert "the compiler says no" in tracer._core.notes[-1]
    finally:
        for cache in caches:
            cache.cache_clear()
    assert len(asked) == 1


@pytest.mark.usefixtures("core")
def test_a_forked_child_records_nothing_and_the_parent_goes_on() -> None:
    said = in_another_process(
        """
        import os, threading, sys
        from devprof.host.functions import function_tracer

        def leaf(): return len("leaf")
        def other():
            while not enough.is_set(): leaf()

        enough = threading.Event()
        threading.Thread(target=other).start()
        tracer = function_tracer()
        tracer.start()
        child = os.fork()
        if child == 0:
            leaf()
            assert sys.getprofile() is None
            batch = tracer.stop()
            print(len(batch), tracer.notes[-1], flush=True)
            second = function_tracer()
            second.start()
            leaf()
            print(sum("leaf" in name for name in second.stop().strings), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        leaf()
        enough.set()
        print(sum("leaf" in name for name in tracer.stop().strings))
        """
    )
    forked = "This process was forked from the one that records function calls; none were recorded here."
    assert said.splitlines() == [f"0 {forked}", "1", "1"]


@pytest.mark.usefixtures("core")
def test_a_program_may_end_while_calls_are_recorded() -> None:
    said = in_another_process(
        """
        import threading
        from devprof.host.functions import function_tracer

        def busy():
            while True: len("busy")

        function_tracer().start()
        for _ in range(4):
            threading.Thread(target=busy, daemon=True).start()
        print("done")
        """
    )
    assert said == "done\n"


def test_the_tracer_says_which_core_it_has(core: str) -> None:
    tracer = function_tracer()
    assert isinstance(tracer, FunctionTracer)
    assert tracer.core == core
