"""A range that a future ends: its time is that of the request, and what comes after the `with` is not inside it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

import pytest

from devprof.errors import UsageError
from devprof.host import record_function
from tests.unit.host.recordings import Range, recording, run_in_thread


def test_a_range_ends_when_its_future_does_and_is_not_current_meanwhile() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    with recording() as session:
        with record_function("request") as entered, record_function("send"):
            assert entered.end_on(future) is future
        with record_function("meanwhile"):
            pass
        future.set_result(1)
        with record_function("after"):
            pass
    assert session.ranges == [
        Range("request", 2, 8),
        Range("send", 3, 4, "request", "request"),
        Range("meanwhile", 6, 7),
        Range("after", 9, 10),
    ]


def test_a_future_that_completes_on_another_thread_is_where_the_range_ends() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    native_ids: list[int] = []

    def complete() -> None:
        native_ids.append(threading.get_native_id())
        future.set_exception(ValueError("failed"))

    with recording() as session:
        with record_function("request") as entered:
            entered.end_on(future)
        run_in_thread(complete)
    (request,) = session.ranges
    assert (request.name, request.items) == ("request", {"End thread": native_ids[0]})


def test_a_future_that_does_not_complete_leaves_the_range_open() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    with recording() as session, record_function("request") as entered:
        entered.end_on(future)
    future.set_result(1)
    assert [(r.name, r.items) for r in session.ranges] == [("request", {"finished": False})]


def test_a_range_that_nobody_records_lets_the_future_be() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    with record_function("request") as entered:
        assert entered.end_on(future) is future
    future.set_result(1)


def test_what_cannot_be_waited_for_cannot_end_a_range() -> None:
    with recording(), record_function("request") as entered, pytest.raises(UsageError, match="cannot end on a int"):
        entered.end_on(7)


def test_a_range_ends_once() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    with recording(), record_function("request") as entered:
        entered.end_on(future)
        with pytest.raises(UsageError, match="'request' ends on another future already"):
            entered.end_on(future)


def test_a_range_ends_when_a_task_of_asyncio_does() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(0))
        with record_function("request") as entered:
            entered.end_on(task)
        await task
        await asyncio.sleep(0)

    with recording() as session:
        asyncio.run(main())
    assert session.ranges == [Range("request", 2, 4)]
