"""Callbacks on ranges: who is told of what, on which thread, how often, and no more once removed."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from devprof.errors import UsageError
from devprof.host import (
    CallbackHandle,
    RangeEvent,
    RecordFunction,
    RecordScope,
    add_global_callback,
    add_thread_local_callback,
    record_function,
    remove_callback,
)
from devprof.host.callbacks import CALLBACKS
from devprof.host.gate import GATE
from tests.unit.host.recordings import Range, recording, run_in_thread


class Log:
    """Notes what it is told, and gives back a number at each enter."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def enter(self, event: RangeEvent) -> int:
        self.said.append(("enter", event.name))
        return len(self.said)

    def exit(self, event: RangeEvent, state: Any) -> None:
        self.said.append(("exit", event.name, state))


def test_a_callback_is_told_of_enters_and_exits_without_a_recorder() -> None:
    log = Log()
    handle = add_global_callback(log.enter, log.exit)
    with record_function("outer"), RecordFunction("op"):
        pass
    assert remove_callback(handle)
    with record_function("after"):
        pass
    assert log.said == [("enter", "outer"), ("enter", "op"), ("exit", "op", 2), ("exit", "outer", 1)]


def test_a_callback_and_a_recorder_see_the_same_ranges() -> None:
    ids: list[int] = []
    handle = add_global_callback(lambda event: ids.append(event.id))
    with recording() as session, record_function("outer"), RecordFunction("op"):
        pass
    remove_callback(handle)
    assert session.ranges == [Range("outer", 2, 5), Range("op", 3, 4, "outer", "outer")]
    assert session.result.ranges.id.tolist() == ids


def test_ids_are_distinct_and_not_zero_also_where_nobody_records() -> None:
    ids: list[int] = []
    handle = add_global_callback(lambda event: ids.append(event.id))
    for _ in range(3):
        with record_function("range"):
            pass
    remove_callback(handle)
    assert len(set(ids)) == 3
    assert min(ids) > 0


def test_an_event_says_what_the_framework_said() -> None:
    events: list[RangeEvent] = []
    handle = add_global_callback(events.append, needs_inputs=True)
    with RecordFunction(
        "MulBackward",
        RecordScope.BACKWARD_FUNCTION,
        inputs=[1, "x"],
        sequence_nr=4,
        forward_thread_id=9,
        overload_name="Tensor",
    ):
        pass
    with record_function("user", "argument"):
        pass
    remove_callback(handle)
    fields = ("name", "scope", "inputs", "sequence_nr", "forward_thread_id", "overload_name")
    assert [tuple(getattr(event, field) for field in fields) for event in events] == [
        ("MulBackward", RecordScope.BACKWARD_FUNCTION, (1, "x"), 4, 9, "Tensor"),
        ("user", RecordScope.USER_SCOPE, ("argument",), -1, 0, ""),
    ]
    assert repr(events[1]) == f"RangeEvent('user', USER_SCOPE, id={events[1].id})"


def test_only_a_callback_that_needs_inputs_gets_them() -> None:
    inputs: dict[str, list[object]] = {"with": [], "without": []}
    handles = [
        add_global_callback(lambda event: inputs["with"].append(event.inputs), needs_inputs=True),
        add_global_callback(lambda event: inputs["without"].append(event.inputs)),
    ]
    with RecordFunction("op", inputs=(1,)):
        pass
    for handle in handles:
        remove_callback(handle)
    assert inputs == {"with": [(1,)], "without": [()]}


def test_exits_come_in_the_reverse_order_of_enters() -> None:
    said: list[str] = []
    handles = [
        add_global_callback(
            lambda _, name=name: said.append(f"enter {name}"), lambda *_, name=name: said.append(f"exit {name}")
        )
        for name in ("first", "second")
    ]
    with record_function("range"):
        pass
    for handle in handles:
        remove_callback(handle)
    assert said == ["enter first", "enter second", "exit second", "exit first"]


def test_a_callback_sees_the_scopes_that_it_asked_for() -> None:
    names: list[str] = []
    handle = add_global_callback(
        lambda event: names.append(event.name), scopes=[RecordScope.USER_SCOPE, RecordScope.BACKWARD_FUNCTION]
    )
    with record_function("user"), RecordFunction("op"), RecordFunction("back", RecordScope.BACKWARD_FUNCTION):
        pass
    remove_callback(handle)
    assert names == ["user", "back"]


def test_a_thread_local_callback_sees_its_own_thread() -> None:
    names: list[str] = []

    def elsewhere() -> None:
        with record_function("elsewhere"):
            pass

    handle = add_thread_local_callback(lambda event: names.append(event.name))
    run_in_thread(elsewhere)
    with record_function("here"):
        pass
    remove_callback(handle)
    assert names == ["here"]


def test_a_thread_takes_its_callbacks_with_it_when_it_ends() -> None:
    handles: list[CallbackHandle] = []
    run_in_thread(lambda: handles.append(add_thread_local_callback(lambda event: None)))
    assert (handles[0].is_removed, bool(CALLBACKS), GATE.queues) == (True, False, None)


def test_a_thread_local_callback_can_be_removed_by_another_thread() -> None:
    log = Log()
    handle = add_thread_local_callback(log.enter)
    run_in_thread(lambda: remove_callback(handle))
    with record_function("range"):
        pass
    assert log.said == []


def test_sampling_takes_a_share_of_the_ranges_and_leaves_the_programs_random_numbers_alone() -> None:
    import random

    log = Log()
    random.seed(7)
    expected = random.random()
    random.seed(7)
    handles = [add_global_callback(log.enter, log.exit, sampling_probability=0.25)]
    for _ in range(2000):
        with record_function("range"):
            pass
    handles.append(add_global_callback(lambda event: pytest.fail("sampled"), sampling_probability=0.0))
    with record_function("range"):
        pass
    for handle in handles:
        remove_callback(handle)
    enters = sum(said[0] == "enter" for said in log.said)
    assert 300 < enters < 700  # ten standard deviations on either side of 500
    assert sum(said[0] == "exit" for said in log.said) == enters
    assert random.random() == expected


def test_a_callback_that_raises_is_logged_once_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: object) -> None:
        raise ValueError("no")

    log = Log()
    handles = [add_global_callback(fails, log.exit), add_global_callback(log.enter, fails)]
    with caplog.at_level(logging.ERROR, "devprof.host"), recording() as session:
        for _ in range(2):
            with record_function("range"):
                pass
    for handle in handles:
        remove_callback(handle)
    assert session.ranges == [Range("range", 2, 3), Range("range", 4, 5)]
    assert log.said == [("enter", "range"), ("enter", "range")]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


def test_the_keyboard_inside_a_callback_leaves_the_range_again() -> None:
    def interrupted(event: RangeEvent) -> None:
        if event.name == "interrupted":
            raise KeyboardInterrupt

    handle = add_global_callback(interrupted)
    with recording() as session:
        for make in (record_function, RecordFunction):
            with pytest.raises(KeyboardInterrupt), make("interrupted"):
                pytest.fail("the body must not run")
        with record_function("after"):
            pass
    remove_callback(handle)
    assert [(r.name, r.parent, r.items) for r in session.ranges] == [
        ("interrupted", "", {}),
        ("interrupted", "", {}),
        ("after", "", {}),
    ]


def test_the_exit_of_a_range_whose_callback_was_removed_is_discarded_and_counted() -> None:
    log = Log()
    handle = add_global_callback(log.enter, log.exit)
    again = None
    with record_function("range"):
        remove_callback(handle)
        again = add_global_callback(log.enter, log.exit)
    remove_callback(again)
    assert (log.said, handle.discarded_exits, again.discarded_exits) == ([("enter", "range")], 1, 0)


def test_a_range_that_was_open_before_the_callback_is_not_told_of() -> None:
    log = Log()
    with recording() as session, record_function("open"):
        handle = add_global_callback(log.enter, log.exit)
    remove_callback(handle)
    assert (log.said, session.ranges) == ([], [Range("open", 2, 3)])


def test_removing_waits_until_no_thread_is_inside() -> None:
    inside, go_on = threading.Event(), threading.Event()
    finished: list[bool] = []

    def slow(event: RangeEvent) -> None:
        inside.set()
        assert go_on.wait(60)
        finished.append(True)

    handle = add_global_callback(slow)

    def body() -> None:
        with record_function("range"):
            pass

    thread = threading.Thread(target=body)
    thread.start()
    assert inside.wait(60)
    threading.Timer(0.05, go_on.set).start()
    assert remove_callback(handle, timeout_s=60)
    assert finished == [True]
    thread.join(60)


def test_removing_says_where_a_thread_stays_inside(caplog: pytest.LogCaptureFixture) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def stuck(event: RangeEvent) -> None:
        inside.set()
        assert go_on.wait(60)

    handle = add_global_callback(stuck)

    def body() -> None:
        with record_function("range"):
            pass

    thread = threading.Thread(target=body)
    thread.start()
    assert inside.wait(60)
    with caplog.at_level(logging.WARNING, "devprof.host"):
        assert not remove_callback(handle, timeout_s=0.0)
    assert "a thread is still inside it after 0 s" in caplog.text
    go_on.set()
    thread.join(60)
    assert remove_callback(handle)


def test_a_callback_can_remove_itself() -> None:
    log = Log()
    handles: list[CallbackHandle] = []

    def once(event: RangeEvent) -> None:
        log.enter(event)
        assert remove_callback(handles[0], timeout_s=60)

    handles.append(add_global_callback(once, log.exit))
    for _ in range(2):
        with record_function("range"):
            pass
    assert log.said == [("enter", "range")]


def test_what_cannot_be_registered_is_refused() -> None:
    def enter(event: RangeEvent) -> None:
        pass

    with pytest.raises(UsageError, match="called at enter"):
        add_global_callback(7)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="sampling_probability is 'often', expected a number from 0 to 1"):
        add_global_callback(enter, sampling_probability="often")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"sampling_probability is 1\.5"):
        add_global_callback(enter, sampling_probability=1.5)
    with pytest.raises(UsageError, match="expected members of RecordScope"):
        add_global_callback(enter, scopes=["user"])  # type: ignore[list-item]


def test_callbacks_come_and_go_while_threads_run_ranges() -> None:
    stop = threading.Event()
    open_ranges: dict[int, int] = {}

    def enter(event: RangeEvent) -> int:
        open_ranges[event.id] = 1
        return event.id

    def leave(event: RangeEvent, state: int) -> None:
        assert state == event.id
        del open_ranges[state]

    def body() -> None:
        while not stop.is_set():
            with record_function("outer"), record_function("inner"):
                pass

    threads = [threading.Thread(target=body) for _ in range(2)]
    with recording() as session:
        for thread in threads:
            thread.start()
        for _ in range(15):
            handle = add_global_callback(enter, leave)
            assert remove_callback(handle, timeout_s=60)
            open_ranges.clear()  # nobody is inside, and nobody will come
        stop.set()
        for thread in threads:
            thread.join(60)
    assert open_ranges == {}
    assert {(r.name, r.parent, tuple(r.items)) for r in session.ranges} == {
        ("outer", "", ()),
        ("inner", "outer", ()),
    }
