"""A recorder with limits: a ring, a beginning, a file, sums; and what it has recorded so far."""

from __future__ import annotations

import errno
import gc
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devprof.errors import SessionError
from devprof.host import (
    HostOptions,
    HostRecorder,
    HostRecording,
    RecordFunction,
    keeping,
    letting_go,
    record_function,
    report_memory,
)
from devprof.host.gate import BLOCK_SIZE
from devprof.host.queues import Queue
from devprof.model import ActivityBatch, ActivityType
from devprof.model.reasons import BEFORE_WINDOW, LET_GO, OVER_LIMIT
from devprof.store.limits import Limits, WhenFull
from devprof.store.spill import SpillFile
from devprof.store.totals import NameTotal
from tests.unit.host.recordings import Range, Ticks, ranges_of, recording, run_in_thread

RING = Limits(2048, None, WhenFull.RING)


def leaves(count: int, name: str = "leaf") -> None:
    for _ in range(count):
        with record_function(name):
            pass


def produced(found: HostRecording) -> int:
    return len(found.ranges) + len(found.memory) + sum(found.discarded.values())


def rows(batch: ActivityBatch) -> list[tuple[str, int, int]]:
    return [(one.activity_name, one.start_ns, one.end_ns) for one in batch.activities()]


def a_program(seed: int, steps: int = 6000) -> None:
    """Enter and leave ranges as a seed says: nested, of few and of many names, with inputs, some for very long."""
    choose = random.Random(seed)
    stack: list[Any] = []
    for step in range(steps):
        if stack and (len(stack) > 12 or choose.random() < 0.5):
            stack.pop().__exit__(None, None, None)
        elif choose.random() < 0.1:
            stack.append(RecordFunction(f"op {step}", sequence_nr=step, inputs=(step,)).__enter__())
        else:
            stack.append(record_function(f"name {step % 5}").__enter__())
        if choose.random() < 0.1:
            report_memory(step, 8, step, step, "cpu")
    while stack:
        stack.pop().__exit__(None, None, None)


# -- a ring ------------------------------------------------------------------------------------------------------------


def test_a_ring_holds_the_latest_ranges_and_counts_the_others() -> None:
    with recording(limits=RING) as session:
        leaves(20_000)
    found = session.result
    assert found.complete_since_ticks is not None
    # the clock goes two ticks per range, from 2 on: everything is there that was open then or began later
    assert found.ranges.start.tolist() == list(range(found.complete_since_ticks - 1, 40_001, 2))
    assert 1024 < len(found.ranges) <= 2048 + 512
    assert found.discarded == {LET_GO: 20_000 - len(found.ranges)}


@pytest.mark.parametrize("seed", range(5))
def test_a_ring_is_the_end_of_what_a_recording_without_limits_holds(seed: int) -> None:
    options: dict[str, Any] = {"record_shapes": True, "profile_memory": True}
    with recording(**options) as whole:
        a_program(seed)
    with recording(limits=RING, **options) as ring:
        a_program(seed)
    first = ring.result.complete_since_ticks
    assert first is not None
    kept = [one for one in ranges_of(whole.result.ranges) if one.end >= first]
    assert len(kept) < len(whole.result.ranges)
    names = {(one.name, one.start) for one in kept}
    # of a range that was open when its chunk went, neither inputs nor sequence number are known any more
    plain = [one._replace(items={}) for one in kept]
    assert {(one.name, one.start) for one in ring.ranges} == names
    assert [one._replace(items={}) for one in ring.ranges] == plain
    late = [one for one in kept if one.start >= first]
    assert [one for one in ring.ranges if one.start >= first] == late
    assert rows(ring.result.memory) == [row for row in rows(whole.result.memory) if row[1] >= first]
    assert produced(ring.result) == len(whole.result.ranges) + len(whole.result.memory)


def test_a_range_that_is_open_when_its_chunk_goes_stays_with_its_true_start() -> None:
    with recording(limits=RING) as session:
        with record_function("all of it"), record_function("most of it"):
            leaves(10_000)
        leaves(100)
        still = record_function("still open")
        still.__enter__()
        leaves(5_000)
        session.stop()
        still.__exit__(None, None, None)
    found = {one.name: one for one in session.ranges}
    last = int(session.result.ranges.end.max())
    assert found["still open"] == Range("still open", 20_206, last, items={"finished": False})
    assert found["leaf"].parent == "still open"
    assert "all of it" not in found, "it ended before everything that is kept"
    assert produced(session.result) == 10_000 + 100 + 5_000 + 3


def test_a_range_that_ends_within_the_ring_has_its_end() -> None:
    with recording(limits=RING) as session:
        with record_function("outer"):
            leaves(10_000)
        leaves(200)
    outer = next(one for one in session.ranges if one.name == "outer")
    assert (outer.start, outer.end, outer.items) == (2, 20_003, {})
    assert {one.parent for one in session.ranges if one.name == "leaf"} == {"outer", ""}


def test_what_was_in_a_range_that_is_gone_is_in_none() -> None:
    from contextvars import copy_context

    with recording(limits=RING) as session:
        with record_function("parent"):
            context = copy_context()  # as a task has it that outlives the range which made it
        leaves(10_000)
        context.run(leaves, 3, "late child")
    children = [one for one in session.ranges if one.name == "late child"]
    assert [(one.parent, one.user) for one in children] == [("", "")] * 3
    assert produced(session.result) == 10_004


def test_open_ranges_that_nobody_ends_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letting_go, "MAX_OPEN", 50)
    with recording(limits=RING) as session:
        for _ in range(6_000):
            record_function("left open").__enter__()
        keeper = session.recorder._keeper
        assert keeper is not None
        assert len(keeper.remains._open) == 50
    assert produced(session.result) == 6_000
    assert session.result.ranges.end.min() == session.result.stopped_ticks


def test_texts_of_a_chunk_that_is_gone_are_gone() -> None:
    with recording(limits=RING, record_shapes=True) as session:
        for number in range(20_000):
            with record_function(f"step {number}", f"argument {number}"):
                pass
        keeper = session.recorder._keeper
        assert keeper is not None
        labels = sum(len(queue.labels.numbers) for queue in keeper.queues())
        inputs = sum(len(queue.inputs) for queue in keeper.queues())
    assert labels <= 2048 + 512
    assert inputs <= 16 * (2048 + 512)


def test_memory_reports_alone_fill_a_ring_too() -> None:
    with recording(limits=Limits(None, 1 << 20, WhenFull.RING), profile_memory=True) as session:
        for number in range(50_000):
            report_memory(number, 1, number, number, "cpu")
    memory = session.result.memory
    assert memory.metadata["Addr"].values.tolist() == list(range(50_000 - len(memory), 50_000))
    assert 10_000 < len(memory) < 25_000
    assert produced(session.result) == 50_000


def test_chunks_of_threads_that_are_gone_are_let_go() -> None:
    with recording(limits=RING) as session:
        for _ in range(300):
            run_in_thread(lambda: leaves(100))
        keeper = session.recorder._keeper
        assert keeper is not None
        assert len(keeper.queues()) < 40
        assert len(keeper._current) <= 2
    assert produced(session.result) == 30_000
    assert len(session.result.ranges) >= 1024


def test_many_threads_share_the_limit() -> None:
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        leaves(5_000)
        barrier.wait()

    with recording(limits=Limits(20_000, None, WhenFull.RING)) as session:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(session.result.ranges) < 30_000
    assert produced(session.result) == 40_000


def test_an_end_on_another_thread_is_written_into_a_chunk_that_is_gone_and_into_one_that_is_kept() -> None:
    with recording(limits=RING) as session:
        early = record_function("early").__enter__()
        leaves(10_000)
        late = record_function("late").__enter__()
        leaves(100)
        run_in_thread(lambda: [one.__exit__(None, None, None) for one in (early, late)])
        leaves(100)
    ended = {one.name: one.end for one in session.ranges if one.name != "leaf"}
    assert ended["early"] < ended["late"] < session.result.stopped_ticks
    assert produced(session.result) == 10_202


def test_a_signal_handler_may_record_at_any_time() -> None:
    if not hasattr(signal, "setitimer"):
        pytest.skip("this system has no timers that signal")
    entered = 0

    def handler(*_: object) -> None:
        nonlocal entered
        entered += 3
        leaves(3, "handler")
        report_memory(1, 1, 1, 1, "cpu")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with recording(limits=Limits(1024, None, WhenFull.RING), profile_memory=True) as session:
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            leaves(100_000)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert entered > 0
    assert produced(session.result) == 100_000 + entered + entered // 3


def test_what_others_than_the_recorder_keep_alive_is_no_chunk() -> None:
    def queues() -> int:
        gc.collect()
        return sum(
            type(one) is Queue for one in gc.get_objects()
        )  # isinstance would ask objects of others what they are

    before = queues()
    with recording(limits=RING) as session:
        with record_function("outer"):
            leaves(50_000)
        alive = queues() - before
    assert 1 <= alive < 30, "of some fifty chunks"
    assert len(session.result.ranges) < 3_000


# -- a beginning -------------------------------------------------------------------------------------------------------


def test_stop_keeps_the_beginning_and_nothing_behind_it() -> None:
    with recording(limits=Limits(4096)) as session:
        leaves(20_000)
    starts = session.result.ranges.start.tolist()
    assert starts == list(range(2, 2 + 2 * len(starts), 2))
    assert 2048 < len(starts) <= 4096 + BLOCK_SIZE
    assert session.result.discarded == {OVER_LIMIT: 20_000 - len(starts)}


# -- a file ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_recording_that_was_spilled_is_the_same_as_one_without_limits(seed: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"record_shapes": True, "profile_memory": True}
    with recording(**options) as whole:
        a_program(seed)
    limits = Limits(1024, None, WhenFull.SPILL, str(tmp_path))
    with recording(limits=limits, **options) as spilled:
        a_program(seed)
        keeper = spilled.recorder._keeper
        assert keeper is not None
        assert isinstance(keeper._spill, SpillFile)
        assert keeper._n_spilled > 2
    assert spilled.ranges == whole.ranges
    assert spilled.result.memory.activities() == [
        replaced(one, other)
        for one, other in zip(whole.result.memory.activities(), spilled.result.memory.activities(), strict=True)
    ]
    assert spilled.result.discarded == {}
    assert list(tmp_path.iterdir()) == []


def replaced(one: Any, other: Any) -> Any:
    """Return a record with the other's ids: those are never the same twice in a process."""
    one.linked, one.linked_user = other.linked, other.linked_user
    return one


def test_ranges_that_are_open_in_a_chunk_on_disk_get_their_end() -> None:
    with recording(limits=Limits(1024, None, WhenFull.SPILL)) as session:
        outer = record_function("outer").__enter__()
        leaves(5_000)
        run_in_thread(lambda: outer.__exit__(None, None, None))
        leaves(10)
    (found,) = [one for one in session.ranges if one.name == "outer"]
    assert (found.start, found.end) == (2, 10_003)
    assert "finished" not in found.items


def test_a_full_disk_loses_only_what_comes_behind_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(SpillFile, "put", full)
    with recording(limits=Limits(4096, None, WhenFull.SPILL)) as session:
        leaves(20_000)
    starts = session.result.ranges.start.tolist()
    assert starts == list(range(2, 2 + 2 * len(starts), 2))
    assert len(starts) > 2048
    assert session.result.discarded == {OVER_LIMIT: 20_000 - len(starts)}
    (note,) = session.result.notes
    assert "could not be spilled" in note
    assert "No space left" in note


# -- sums --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_totals_are_the_sums_over_every_range_kept_or_not(seed: int) -> None:
    with recording() as whole:
        a_program(seed)
    with recording(limits=Limits(1024, None, WhenFull.TOTALS)) as summed:
        a_program(seed)
    expected: dict[tuple[str, ActivityType], list[int]] = {}
    for one in whole.result.ranges.activities():
        expected.setdefault((one.activity_name, one.activity_type), []).append(one.end_ns - one.start_ns)
    assert summed.result.totals is not None
    found = {(row.name, row.activity_type): row for row in summed.result.totals.rows("host")}
    assert found == {
        (name, kind): NameTotal("host", name, kind, len(spent), sum(spent), min(spent), max(spent))
        for (name, kind), spent in expected.items()
    }
    assert len(summed.result.ranges) < len(whole.result.ranges)


# -- so far ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [None, RING, Limits(1024, None, WhenFull.SPILL), Limits(1 << 20)])
def test_a_snapshot_is_what_a_stop_at_that_moment_would_give(limits: Limits | None) -> None:
    def half() -> HostRecording:
        with recording(limits=limits, record_shapes=True, profile_memory=True) as session:
            with record_function("outer"):
                a_program(7, 4000)
                with record_function("open"):
                    report_memory(1, 2, 3, 4, "cpu")
                    early.append(session.recorder.snapshot() if snapshots else session.stop())
            if snapshots:
                a_program(8, 2000)
        return session.result

    early: list[HostRecording] = []
    snapshots = True
    late = half()
    snapshots = False
    half()
    so_far, stopped = early
    assert ranges_of(so_far.ranges) == ranges_of(stopped.ranges)
    assert rows(so_far.memory) == rows(stopped.memory)
    assert (so_far.stopped_ticks, so_far.complete_since_ticks) == (stopped.stopped_ticks, stopped.complete_since_ticks)
    assert so_far.discarded == stopped.discarded
    unfinished = [one.name for one in ranges_of(so_far.ranges) if one.items.get("finished") is False]
    assert unfinished == ["outer", "open"]
    assert produced(late) > produced(so_far)


def test_a_snapshot_since_a_time_leaves_out_what_ended_before_and_keeps_what_was_open() -> None:
    with recording() as session:
        leaves(3_000)
        with record_function("around"):
            leaves(100)
            since = session.ticks() + 1
            leaves(5)
            found = session.recorder.snapshot(since)
    assert [(one.name, one.parent) for one in ranges_of(found.ranges)] == [("around", "")] + [("leaf", "around")] * 5
    assert found.discarded == {BEFORE_WINDOW: 3_100}


def test_a_snapshot_is_refused_where_nothing_is_recorded() -> None:
    recorder = HostRecorder(clock_ticks=Ticks())
    with pytest.raises(SessionError, match="this recorder is new"):
        recorder.snapshot()
    recorder.start()
    recorder.stop()
    with pytest.raises(SessionError, match="this recorder is stopped"):
        recorder.snapshot()


@pytest.mark.parametrize("limits", [None, RING, Limits(4096, None, WhenFull.TOTALS)])
def test_snapshots_beside_threads_that_record_see_whole_ranges_and_lose_none(limits: Limits | None) -> None:
    def work() -> None:
        for _ in range(10_000):
            with record_function("outer"), record_function("inner"):
                pass

    recorder = HostRecorder(HostOptions(limits=limits))
    recorder.start()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    seen = [0]
    while any(thread.is_alive() for thread in threads) and len(seen) < 20:
        found = recorder.snapshot()
        seen.append(produced(found))
        batch = found.ranges
        assert {batch.strings[int(number)] for number in batch.name[batch.linked != 0]} <= {"inner"}
        assert (batch.end >= batch.start).all()
        assert np.isin(batch.linked[batch.linked != 0], batch.id).all()
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)
    assert produced(recorder.stop()) == 60_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_has_none_of_the_ring() -> None:
    with recording(limits=RING) as session:
        leaves(5_000)
        pid = os.fork()
        if pid == 0:
            try:
                leaves(10)
                found = session.recorder.stop()
                os._exit(0 if len(found.ranges) == 0 else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(pid, 0)
        leaves(5_000)
    assert os.waitstatus_to_exitcode(status) == 0
    assert produced(session.result) == 10_000


def test_a_chunk_has_as_many_blocks_as_a_quarter_of_the_limit_allows() -> None:
    queue = Queue(Ticks(), record_shapes=False)
    queue.blocks = [None] * 4  # type: ignore[list-item]  # only their number counts
    keeper = keeping.Keeper(Limits(8 * 4 * BLOCK_SIZE, None, WhenFull.RING))
    lives = [keeper.begin(queue)]
    assert not keeper.is_enough(queue)
    lives.append(keeper.begin(Queue(Ticks(), record_shapes=False)))
    assert keeper.is_enough(queue)
    assert len(lives) == 2
