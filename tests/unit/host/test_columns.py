"""From queues to columns: everything is there, nothing is kept twice, and a late thread does no harm."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from devprof.host import RecordFunction, record_function
from devprof.host.columns import Lookup, close, range_columns
from devprof.host.gate import BLOCK_SIZE
from devprof.host.queues import OPEN, Block, Numbered, Queue
from devprof.host.range_batch import range_batch
from tests.unit.host.recordings import Ticks, recording


def test_no_python_object_is_kept_per_range_once_its_block_is_full() -> None:
    with recording() as session:
        with record_function("range"):
            pass
        gc.collect()
        before = sys.getallocatedblocks()
        n = 40 * BLOCK_SIZE
        for _ in range(n):
            with record_function("range"):
                pass
        gc.collect()
        kept = sys.getallocatedblocks() - before
        # the block that is being filled holds its times as objects, a full one some twenty objects in all
        assert kept < 3 * BLOCK_SIZE + 40 * 30
    assert len(session.result.ranges) == n + 1


def test_a_range_is_kept_in_less_than_40_bytes() -> None:
    n = 64 * BLOCK_SIZE
    with recording():
        with record_function("range"):
            pass
        tracemalloc.start()
        for _ in range(n):
            with record_function("range"):
                pass
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert kept / n < 40


def test_a_range_that_is_being_entered_at_the_stop_is_left_out_and_counted() -> None:
    inside, go_on = threading.Event(), threading.Event()
    main = threading.get_ident()
    ticks = Ticks()

    def clock() -> int:
        if threading.get_ident() != main and ticks_of_worker:
            ticks_of_worker.pop()
            inside.set()
            assert go_on.wait(60)
        return ticks()

    ticks_of_worker = [1]

    def body() -> None:
        with record_function("half entered"):
            pass

    thread = threading.Thread(target=body)
    with recording(clock=clock) as session:
        thread.start()
        assert inside.wait(60)
        with record_function("whole"):
            pass
    go_on.set()
    thread.join(60)
    assert [(r.name, r.start, r.end) for r in session.ranges] == [("whole", 2, 3)]
    assert dict(session.result.discarded) == {"ranges that were being entered at the stop": 1}


def test_rows_are_found_by_id_in_any_order_and_unknown_ids_are_not() -> None:
    lookup = Lookup(np.array([513, 514, 515, 1, 2, 1025], dtype=np.int64))
    wanted = np.array([2, 1025, 513, 515, 516, 3, 0, 5000, -1], dtype=np.int64)
    found = lookup.find(wanted)
    assert found.known.tolist() == [True] * 4 + [False] * 5
    assert found.rows[:4].tolist() == [4, 5, 0, 2]


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert Lookup(np.zeros(0, dtype=np.int64)).find(np.array([1], dtype=np.int64)).known.tolist() == [False]


def test_numbers_of_labels_may_have_gaps() -> None:
    queue = Queue(Ticks(), record_shapes=False)
    next(queue.labels._counter)  # as when a signal handler took one in between
    block = queue.grow()
    block.next, block.starts[0], block.ends[0], block.labels[0] = 1, 5, OPEN, queue.labels.number("range")
    batch = range_batch(range_columns([close(queue)]), [queue], first_id=0, stopped_ticks=9)
    assert [batch.strings[i] for i in batch.name] == ["range"]
    assert (batch.start.tolist(), batch.end.tolist(), list(batch.metadata)) == ([5], [9], ["finished"])


def test_numbered_gives_a_value_one_number() -> None:
    numbered = Numbered()
    assert [numbered.number(value) for value in ("a", "b", "a", ("c", 1))] == [0, 1, 0, 2]


@pytest.mark.parametrize("depth", [1, 2, 3, 1000])
def test_the_user_range_around_is_found_through_any_number_of_ops(depth: int) -> None:
    with recording() as session:
        user = record_function("user")
        ops = [RecordFunction("op") for _ in range(depth)]
        for entered in (user, *ops):
            entered.__enter__()
        with record_function("inner"):
            pass
        for entered in (*reversed(ops), user):
            entered.__exit__(None, None, None)
    ranges = session.result.ranges
    assert ranges.linked_user.tolist() == [0, *[user.id] * (depth + 1)]
    assert ranges.linked.tolist() == [0, user.id, *(op.id for op in ops)]


def test_an_exit_that_runs_beside_the_stop_ends_no_later_than_it() -> None:
    queue = Queue(Ticks(), record_shapes=False)
    block = queue.grow()
    block.next, block.labels[0] = 1, queue.labels.number("range")
    block.starts[0], block.ends[0] = 5, 12
    batch = range_batch(range_columns([close(queue)]), [queue], first_id=0, stopped_ticks=9)
    assert (batch.start.tolist(), batch.end.tolist(), dict(batch.metadata)) == ([5], [9], {})


def test_nothing_of_a_session_is_kept_by_its_recorder_or_by_a_range_that_stays_open() -> None:
    open_range = record_function("open")
    with recording() as session:
        open_range.__enter__()
        for _ in range(4 * BLOCK_SIZE):
            with record_function("range"):
                pass
        before = len([each for each in gc.get_objects() if type(each) is Block])
    gc.collect()
    after = len([each for each in gc.get_objects() if type(each) is Block])
    open_range.__exit__(None, None, None)
    assert (before >= 5, after <= before - 4) == (True, True)
    assert len(session.result.ranges) == 4 * BLOCK_SIZE + 1
