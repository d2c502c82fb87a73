"""`record_function` as a context manager: what is recorded of ranges that are left as they should be, and of others."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from contextvars import Context

import pytest

from devprof.errors import UsageError
from devprof.host import RecordFunction, record_function
from devprof.host.gate import BLOCK_SIZE
from devprof.model import ActivityType
from tests.unit.host.recordings import Range, recording, run_in_thread


def test_ranges_nest_by_the_order_of_entering() -> None:
    with recording() as session:
        with record_function("outer"):
            with record_function("first"):
                pass
            with record_function("second"):
                pass
        with record_function("after"):
            pass
    assert session.ranges == [
        Range("outer", 2, 7),
        Range("first", 3, 4, "outer", "outer"),
        Range("second", 5, 6, "outer", "outer"),
        Range("after", 8, 9),
    ]


def test_a_recording_says_when_it_began_and_ended() -> None:
    with recording() as session, record_function("range"):
        pass
    assert (session.result.started_ticks, session.result.stopped_ticks) == (1, 4)


def test_a_user_range_is_an_annotation_and_an_op_is_not() -> None:
    with recording() as session, record_function("user"), RecordFunction("op"):
        pass
    assert session.result.ranges.activity_type.tolist() == [ActivityType.USER_ANNOTATION, ActivityType.CPU_OP]


def test_ids_are_dense_on_a_thread_and_never_given_twice() -> None:
    ids = []
    for _ in range(2):
        with recording() as session:
            for _ in range(3):
                with record_function("range"):
                    pass
        ids.append(session.result.ranges.id.tolist())
    assert ids == [[first, first + 1, first + 2] for first, *_ in ids]
    assert ids[1][0] > ids[0][2] > 0


def test_a_range_knows_its_id_while_it_is_open_and_afterwards() -> None:
    with recording() as session, record_function("range") as entered:
        inside = entered.id
    assert session.result.ranges.id.tolist() == [inside] == [entered.id]


def test_more_ranges_than_fit_a_block_are_all_there_in_order() -> None:
    n = 2 * BLOCK_SIZE + 7
    with recording() as session, record_function("outer"):
        for number in range(n):
            with record_function(f"range {number}"):
                pass
    expected = [Range("outer", 2, 2 * n + 3)]
    expected += [Range(f"range {i}", 2 * i + 3, 2 * i + 4, "outer", "outer") for i in range(n)]
    assert session.ranges == expected


def test_an_exception_goes_through_and_ends_the_ranges() -> None:
    with recording() as session:
        with pytest.raises(KeyError, match="lost"), record_function("outer"), record_function("inner"):
            raise KeyError("lost")
        with record_function("after"):
            pass
    assert session.ranges == [Range("outer", 2, 5), Range("inner", 3, 4, "outer", "outer"), Range("after", 6, 7)]


def test_a_range_that_is_open_at_the_stop_ends_with_it_unfinished() -> None:
    with ExitStack() as stack, recording() as session:
        stack.enter_context(record_function("outer"))
        stack.enter_context(RecordFunction("op"))
        with record_function("closed"):
            pass
        session.stop()
    assert session.ranges == [
        Range("outer", 2, 6, items={"finished": False}),
        Range("op", 3, 6, "outer", "outer", {"finished": False}),
        Range("closed", 4, 5, "op", "outer"),
    ]


def test_an_exit_that_comes_after_the_stop_changes_nothing() -> None:
    late = record_function("late")
    with recording() as session:
        late.__enter__()
    batch = session.result.ranges
    before = batch.end.tolist()
    late.__exit__(None, None, None)
    assert (batch.end.tolist(), dict(session.result.discarded)) == (before, {})


def test_an_exit_that_belongs_to_an_earlier_session_is_discarded_and_counted() -> None:
    late = [record_function("late"), record_function("later")]
    with recording() as first:
        for entered in late:
            entered.__enter__()
    with recording() as second, record_function("new"):
        for entered in reversed(late):
            entered.__exit__(None, None, None)
        with record_function("inner"):
            pass
    assert first.ranges == [
        Range("late", 2, 4, items={"finished": False}),
        Range("later", 3, 4, "late", "late", {"finished": False}),
    ]
    assert [(r.name, r.parent, r.items) for r in second.ranges] == [("new", "", {}), ("inner", "new", {})]
    assert dict(second.result.discarded) == {"exits of an earlier session": 2}


def test_a_range_of_an_earlier_session_is_nobodys_parent() -> None:
    with ExitStack() as stack:
        with recording():
            stack.enter_context(record_function("old"))
        with recording() as second, record_function("new"), RecordFunction("op"):
            pass
    assert second.ranges == [Range("new", 2, 5), Range("op", 3, 4, "new", "new")]


def test_a_range_that_was_entered_before_the_session_is_not_recorded() -> None:
    with ExitStack() as stack:
        early = record_function("early")
        stack.enter_context(early)
        with recording() as session:
            with record_function("inside"):
                pass
            stack.close()
            with early:
                pass
    assert session.ranges == [Range("inside", 2, 3), Range("early", 4, 5)]


def test_ranges_that_are_left_in_another_order_keep_their_own_times() -> None:
    first, second = record_function("first"), record_function("second")
    with recording() as session:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        with record_function("inside second"):
            pass
        second.__exit__(None, None, None)
        with record_function("after"):
            pass
    assert session.ranges == [
        Range("first", 2, 4),
        Range("second", 3, 7, "first", "first"),
        Range("inside second", 5, 6, "second", "second"),
        Range("after", 8, 9),
    ]


def test_a_range_that_was_left_out_of_order_is_not_current_when_the_inner_one_ends() -> None:
    ranges = [record_function(name) for name in ("first", "second", "third")]
    with recording() as session:
        for entered in ranges:
            entered.__enter__()
        ranges[0].__exit__(None, None, None)
        ranges[1].__exit__(None, None, None)
        with RecordFunction("in third"):
            pass
        ranges[2].__exit__(None, None, None)
        with RecordFunction("outside"):
            pass
    parents = {r.name: r.parent for r in session.ranges}
    assert (parents["in third"], parents["outside"]) == ("third", "")


def test_a_range_that_ends_on_another_thread_says_so() -> None:
    entered = record_function("moved")
    native_ids = []

    def elsewhere() -> None:
        native_ids.append(threading.get_native_id())
        entered.__exit__(None, None, None)

    with recording() as session:
        entered.__enter__()
        run_in_thread(elsewhere)
        with record_function("after"):
            pass
    assert session.ranges == [Range("moved", 2, 3, items={"End thread": native_ids[0]}), Range("after", 4, 5)]
    assert session.result.ranges.thread_id.tolist() == [threading.get_native_id()] * 2


def test_a_range_that_ends_on_another_thread_may_be_in_a_block_that_is_full() -> None:
    entered = record_function("moved")
    with recording() as session:
        entered.__enter__()
        for _ in range(BLOCK_SIZE):
            with record_function("range"):
                pass
        run_in_thread(lambda: entered.__exit__(None, None, None))
    moved = session.ranges[0]
    assert (moved.name, moved.start, moved.end) == ("moved", 2, 2 * BLOCK_SIZE + 3)
    assert list(moved.items) == ["End thread"]


def test_a_range_that_ends_in_another_context_of_its_thread_is_not_current_any_more(another_context: Context) -> None:
    entered = record_function("moved")
    with recording() as session:
        entered.__enter__()
        another_context.run(entered.__exit__, None, None, None)
        with record_function("after"):
            pass
    assert session.ranges == [Range("moved", 2, 3), Range("after", 4, 5)]


def test_a_range_that_ended_elsewhere_can_be_entered_again() -> None:
    entered = record_function("moved")
    with recording() as session:
        entered.__enter__()
        run_in_thread(lambda: entered.__exit__(None, None, None))
        with entered, record_function("inside"):
            pass
        with record_function("after"):
            pass
    assert [(r.name, r.start, r.end, r.parent) for r in session.ranges] == [
        ("moved", 2, 3, ""),
        ("moved", 4, 7, ""),
        ("inside", 5, 6, "moved"),
        ("after", 8, 9, ""),
    ]


def test_a_second_exit_changes_nothing() -> None:
    entered = record_function("range")
    with recording() as session, record_function("outer"):
        with entered:
            pass
        entered.__exit__(None, None, None)
        with record_function("inner"):
            pass
    assert session.ranges == [
        Range("outer", 2, 7),
        Range("range", 3, 4, "outer", "outer"),
        Range("inner", 5, 6, "outer", "outer"),
    ]


def test_one_object_can_be_entered_again_and_again() -> None:
    entered = record_function("range")
    with recording() as session:
        for _ in range(2):
            with entered:
                pass
    assert session.ranges == [Range("range", 2, 3), Range("range", 4, 5)]


def test_one_object_can_be_entered_within_itself() -> None:
    entered = record_function("range")
    with recording() as session:
        with entered, RecordFunction("op"), entered, entered:
            pass
        with record_function("after"):
            pass
    assert session.ranges == [
        Range("range", 2, 9),
        Range("op", 3, 8, "range", "range"),
        Range("range", 4, 7, "op", "range"),
        Range("range", 5, 6, "range", "range"),
        Range("after", 10, 11),
    ]


def test_one_object_can_be_entered_on_two_threads_at_a_time() -> None:
    entered = record_function("range")

    def elsewhere() -> None:
        with entered:
            entered_there.set()
            assert left_here.wait(60)
            with RecordFunction("there"):
                pass

    with recording() as session:
        entered_there, left_here = threading.Event(), threading.Event()
        thread = threading.Thread(target=elsewhere)
        with entered:
            thread.start()
            assert entered_there.wait(60)
        left_here.set()
        thread.join(60)
        with RecordFunction("here"):
            pass
    assert [(r.name, r.start, r.end, r.parent) for r in session.ranges] == [
        ("range", 2, 4, ""),
        ("here", 8, 9, ""),
        ("range", 3, 7, ""),
        ("there", 5, 6, "range"),
    ]


def test_a_name_is_text() -> None:
    with pytest.raises(UsageError, match="a range's name is text; found int 7"):
        record_function(7)  # type: ignore[arg-type]


def test_a_name_of_a_class_of_texts_is_kept_as_plain_text() -> None:
    class Text(str):
        __slots__ = ()

    with recording() as session, record_function(Text("range")):
        pass
    assert session.ranges == [Range("range", 2, 3)]
    assert type(session.result.ranges.strings[0]) is str


def test_an_argument_is_the_only_input_where_shapes_are_recorded() -> None:
    items = {"Input Dims": "[[]]", "Input type": '[""]', "Concrete Inputs": '["batch 3"]'}
    found = []
    for record_shapes in (True, False):
        with recording(record_shapes=record_shapes) as session, record_function("range", "batch 3"):
            pass
        found.append(session.ranges)
    assert found == [[Range("range", 2, 3, items=items)], [Range("range", 2, 3)]]


def test_while_nobody_records_a_range_is_nothing() -> None:
    with record_function("before") as entered:
        assert entered.block is None
    with recording() as session:
        pass
    assert session.ranges == []


def test_a_generator_that_is_abandoned_ends_its_range_when_it_is_collected() -> None:
    def numbers() -> object:
        with record_function("generator"):
            yield 1
            yield 2

    with recording() as session:
        generator = numbers()
        next(generator)  # type: ignore[call-overload]
        with record_function("consumer"):
            del generator
        with record_function("after"):
            pass
    assert session.ranges == [
        Range("generator", 2, 4),
        Range("consumer", 3, 5, "generator", "generator"),
        Range("after", 6, 7),
    ]
