"""`HostRecorder`: the order of calls, sessions after each other, toggling, threads, and the child of a fork."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from devprof import correlation
from devprof.correlation import Correlation
from devprof.errors import SessionError
from devprof.host import (
    HOST_TICKS,
    HostOptions,
    HostRecorder,
    RecordFunction,
    add_global_callback,
    gate,
    record_function,
    remove_callback,
    report_memory,
)
from devprof.host import recorder as recorder_module
from devprof.host.queues import Queue
from tests.unit.host.recordings import Range, Ticks, ranges_of, recording, run_in_thread


def test_nothing_recorded_is_an_empty_recording() -> None:
    with recording() as session:
        pass
    result = session.result
    assert [len(batch) for batch in (result.ranges, result.memory, result.functions)] == [0, 0, 0]
    assert {batch.clock for batch in (result.ranges, result.memory, result.functions)} == {HOST_TICKS}
    assert (dict(result.threads), dict(result.discarded), result.notes) == (
        {threading.get_native_id(): "MainThread"},
        {},
        (),
    )


def test_two_recorders_cannot_record_at_a_time() -> None:
    with recording(), pytest.raises(SessionError, match="another host recorder is recording"):
        HostRecorder().start()


def test_a_recorder_is_used_once_and_in_order() -> None:
    recorder = HostRecorder()
    with pytest.raises(SessionError, match="this recorder is new, expected one that is recording"):
        recorder.stop()
    recorder.start()
    with pytest.raises(SessionError, match="this recorder is recording; a recorder is used once"):
        recorder.start()
    recorder.stop()
    for call in (recorder.stop, lambda: recorder.toggle(True)):
        with pytest.raises(SessionError, match="this recorder is stopped, expected"):
            call()
    with pytest.raises(SessionError, match="this recorder is stopped; a recorder is used once"):
        recorder.start()
    assert repr(recorder).startswith("HostRecorder(stopped, HostOptions(")


def test_a_recorder_that_cannot_start_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> int:
        raise OSError("no clock")

    recorder = HostRecorder(clock_ticks=fails)
    with pytest.raises(OSError, match="no clock"):
        recorder.start()
    with recording() as session, record_function("range"):
        pass
    assert session.ranges == [Range("range", 2, 3)]


def test_a_recorder_whose_start_is_interrupted_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        monkeypatch.undo()
        arrange()
        raise KeyboardInterrupt

    arrange = recorder_module.arrange
    recorder = HostRecorder(HostOptions(with_stack=True))
    monkeypatch.setattr(recorder_module, "arrange", interrupted)  # the last that it does
    with pytest.raises(KeyboardInterrupt):
        recorder.start()
    assert sys.getprofile() is None
    with recording(with_stack=True) as session, record_function("range"):
        pass
    assert [range_.name for range_ in session.ranges] == ["range"]


@pytest.mark.parametrize("make", [record_function, RecordFunction])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_range_may_be_entered_while_its_thread_is_made_ready(
    make: Callable[[str], record_function | RecordFunction], mirrored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Queue.__init__
    inside = []

    def interrupted(queue: Queue, *arguments: Any) -> None:  # as by a signal handler, or a finalizer
        if not inside:
            inside.append(1)
            with make("inner"):
                report_memory(1, 2, 3, 4, "cpu")
        made(queue, *arguments)

    def body() -> None:
        with make("outer"):
            pass

    pushed: list[int] = []
    mirrors = [(lambda kind, _: pushed.append(kind), lambda kind: pushed.append(kind))]
    with recording(mirrors if mirrored else (), profile_memory=True) as session:
        monkeypatch.setattr(Queue, "__init__", interrupted)
        run_in_thread(body)
        monkeypatch.undo()
    assert sorted(range_.name for range_ in session.ranges) == ["inner", "outer"]
    assert len(session.result.memory) == 1
    assert len(set(session.result.ranges.thread_id.tolist())) == 1


def test_what_begins_beside_the_stop_begins_no_later(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[record_function] = []

    class Late(Ticks):
        def __call__(self) -> int:
            now = super().__call__()
            if late and now == 4:  # the stop's own reading
                late.pop().__enter__()
            return now

    ticks = Late()
    recorder = HostRecorder(clock_ticks=ticks)
    recorder.start()
    with record_function("range"):
        pass
    queues = gate.GATE.queues
    monkeypatch.setattr(recorder, "_end", lambda: (HostRecorder._end(recorder), setattr(gate.GATE, "queues", queues)))
    late.append(record_function("late"))
    result = recorder.stop()
    gate.GATE.close()
    assert (result.stopped_ticks, ranges_of(result.ranges)) == (
        4,
        [Range("range", 2, 3), Range("late", 4, 4, items={"finished": False})],
    )


def test_start_and_stop_may_be_on_different_threads() -> None:
    recorder = HostRecorder(clock_ticks=Ticks())
    run_in_thread(recorder.start, "starter")
    with record_function("range"):
        pass
    results = []
    run_in_thread(lambda: results.append(recorder.stop()))
    assert ranges_of(results[0].ranges) == [Range("range", 2, 3)]


def test_what_is_entered_while_collection_is_off_is_not_recorded() -> None:
    with recording(profile_memory=True) as session:
        with record_function("on"):
            session.recorder.toggle(False)
            with record_function("off") as off:
                report_memory(1, 1, 1, 1, "cpu")
                session.recorder.toggle(True)
                session.recorder.toggle(True)
                with RecordFunction("inside off"):
                    report_memory(2, 1, 1, 1, "cpu")
        assert off.block is None
    assert session.ranges == [Range("on", 2, 6), Range("inside off", 3, 5, "on", "on")]
    assert session.result.memory.start.tolist() == [4]


def test_without_ranges_there_are_no_ranges_and_no_ids() -> None:
    with recording(record_ranges=False) as session, record_function("range") as entered:
        assert (entered.block, correlation.current()) == (None, Correlation(0, 0))
    assert session.ranges == []


def test_threads_that_start_and_end_during_a_session_are_all_recorded() -> None:
    native_ids: dict[str, int] = {}

    def worker(name: str) -> Callable[[], None]:
        def body() -> None:
            native_ids[name] = threading.get_native_id()
            with record_function(f"range of {name}"):
                pass

        return body

    with recording() as session:
        for name in ("first", "second"):
            run_in_thread(worker(name), name)
        with record_function("range of main"):
            pass
    by_name = dict(zip([r.name for r in session.ranges], session.result.ranges.thread_id.tolist(), strict=True))
    assert by_name == {
        "range of main": threading.get_native_id(),
        "range of first": native_ids["first"],
        "range of second": native_ids["second"],
    }
    assert dict(session.result.threads) == {
        threading.get_native_id(): "MainThread",
        native_ids["first"]: "first",
        native_ids["second"]: "second",
    }


def test_a_thread_that_was_renamed_has_its_last_name() -> None:
    def body() -> None:
        with record_function("range"):
            pass
        threading.current_thread().name = "renamed"

    with recording() as session:
        run_in_thread(body, "named")
    assert "renamed" in session.result.threads.values()


def test_a_thread_that_python_did_not_start_has_no_name_and_is_not_made_up() -> None:
    import _thread

    done = threading.Event()

    def body() -> None:
        with record_function("range"):
            pass
        done.set()

    before = len(threading.enumerate())
    with recording() as session:
        _thread.start_new_thread(body, ())
        assert done.wait(60)
        assert len(threading.enumerate()) == before
    (native_id,) = session.result.ranges.thread_id.tolist()
    assert session.result.threads[native_id] == ""


def test_a_range_that_another_thread_has_open_at_the_stop_is_unfinished_and_its_exit_late() -> None:
    entered, stopped = threading.Event(), threading.Event()

    def body() -> None:
        with record_function("open"):
            entered.set()
            assert stopped.wait(60)

    thread = threading.Thread(target=body)
    with recording() as first:
        thread.start()
        assert entered.wait(60)
    with recording() as second:
        stopped.set()
        thread.join(60)
    assert first.ranges == [Range("open", 2, 3, items={"finished": False})]
    assert (second.ranges, dict(second.result.discarded)) == ([], {"exits of an earlier session": 1})


def test_with_stack_function_calls_are_recorded_on_the_same_clock() -> None:
    def called() -> None:
        with record_function("range"):
            pass

    recorder = HostRecorder(HostOptions(with_stack=True))
    recorder.start()
    called()
    result = recorder.stop()
    functions, ranges = result.functions, result.ranges
    rows = [row for row in range(len(functions)) if functions.strings[functions.name[row]].endswith(": called")]
    assert len(rows) == 1
    assert functions.clock == ranges.clock
    assert functions.start[rows[0]] <= ranges.start[0] <= ranges.end[0] <= functions.end[rows[0]]
    assert result.threads[threading.get_native_id()] == "MainThread"


def test_many_threads_lose_nothing() -> None:
    rounds, workers = 400, 8
    turns = threading.Barrier(workers)

    def worker(number: int) -> Callable[[], None]:
        def body() -> None:
            turns.wait(60)
            for _ in range(rounds):
                with record_function(f"outer {number}"), RecordFunction("op", sequence_nr=number):
                    report_memory(number, 1, 1, 1, f"openreg:{number}")

        return body

    with recording(profile_memory=True) as session:
        threads = [threading.Thread(target=worker(number), name=f"worker {number}") for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    ranges = session.result.ranges
    assert len(set(ranges.id.tolist())) == len(ranges) == 2 * rounds * workers
    names = session.result.threads
    rows = zip(ranges.thread_id.tolist(), session.ranges, strict=True)
    seen = Counter((names[thread], r.name, r.parent, r.items.get("Sequence number")) for thread, r in rows)
    expected = {
        (f"worker {n}", name, parent, sequence)
        for n in range(workers)
        for name, parent, sequence in ((f"outer {n}", "", None), ("op", f"outer {n}", n))
    }
    assert seen == dict.fromkeys(expected, rounds)
    for thread_id in set(ranges.thread_id.tolist()):
        starts = ranges.start[ranges.thread_id == thread_id]
        assert (starts[1:] > starts[:-1]).all()
    assert len(session.result.memory) == rounds * workers


def test_sessions_come_and_go_while_threads_run_ranges() -> None:
    is_over = threading.Event()

    def body() -> None:
        while not is_over.is_set():
            with record_function("outer"), RecordFunction("op"):
                pass

    threads = [threading.Thread(target=body) for _ in range(4)]
    for thread in threads:
        thread.start()
    found: set[tuple[str, str]] = set()
    last = 0
    for _ in range(30):
        with recording() as session:
            while len(found) < 2:  # until a worker has had its turn
                with record_function("outer"), RecordFunction("op"):
                    found |= {("outer", ""), ("op", "outer")}
        batch = session.result.ranges
        assert (batch.end >= batch.start).all()
        assert batch.id.min(initial=last + 1) > last
        last = int(batch.id.max(initial=last))
        found |= {(r.name, r.parent) for r in session.ranges}
    is_over.set()
    for thread in threads:
        thread.join(60)
    assert found <= {("outer", ""), ("op", "outer"), ("op", "")}


def test_the_provider_of_before_is_back_after_the_session() -> None:
    correlation.push_correlation_id(7)
    with recording(), record_function("range") as entered:
        assert correlation.current() == Correlation(entered.id, entered.id)
    assert correlation.current() == Correlation(7, 0)
    correlation.pop_correlation_id()


def test_an_id_that_the_program_pushes_goes_before_the_ranges() -> None:
    with recording(), record_function("range") as entered:
        correlation.push_correlation_id(7)
        with_op = correlation.current()
        correlation.push_user_correlation_id(8)
        with_both = (correlation.current(), correlation.current_op_id(), correlation.current_user_id())
        correlation.pop_correlation_id()
        correlation.pop_user_correlation_id()
        without = correlation.current()
    assert with_op == Correlation(7, entered.id)
    assert with_both == (Correlation(7, 8), 7, 8)
    assert without == Correlation(entered.id, entered.id)


def test_an_op_is_current_inside_the_user_range_around_it() -> None:
    with recording(), record_function("user") as user, RecordFunction("op") as op:
        assert correlation.current() == Correlation(op.id, user.id)


def test_a_range_of_an_earlier_session_is_not_current() -> None:
    old = record_function("old")
    with recording():
        old.__enter__()
    with recording():
        assert correlation.current() == Correlation(0, 0)
        with RecordFunction("op") as op:
            assert correlation.current() == Correlation(op.id, 0)
    old.__exit__(None, None, None)


def test_a_provider_that_somebody_set_meanwhile_stays() -> None:
    theirs = correlation.PythonStacks()
    with recording():
        correlation.set_provider(theirs)
    assert correlation.set_provider(None) is theirs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_in_the_child_of_a_fork_nothing_is_recorded_and_a_session_of_its_own_can_run() -> None:
    names: list[str] = []
    handle = add_global_callback(lambda event: names.append(event.name))
    with recording() as session, record_function("outer"):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.write(writer, repr(_in_the_child(session.recorder, names)).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            said = pipe.read()
        assert os.waitpid(pid, 0)[1] == 0
        with record_function("inner"):
            pass
    remove_callback(handle)
    expected = (
        [("range of the child", "", {})],
        ("This process was forked from the one that records; nothing was recorded here.",),
        0,
        (0, 0),
        ["outer", "not recorded", "range of the child"],
    )
    assert said == repr(expected)
    assert [(r.name, r.parent, r.items) for r in session.ranges] == [("outer", "", {}), ("inner", "outer", {})]
    assert names == ["outer", "inner"]


def _in_the_child(recorder: HostRecorder, names: list[str]) -> object:
    assert recorder_module._active is None
    with record_function("not recorded"):
        current = tuple(correlation.current())
    own = HostRecorder(HostOptions(), clock_ticks=Ticks())
    own.start()
    with record_function("range of the child"):
        pass
    mine = [(r.name, r.parent, r.items) for r in ranges_of(own.stop().ranges)]
    recorder.toggle(False)
    theirs = recorder.stop()
    return mine, theirs.notes, len(theirs.ranges), current, names
