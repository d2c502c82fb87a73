"""Every record that a plugin hands over is taken or counted, whatever it holds, until the collector is closed."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devprof.capture import Collector, PluginLedger, collector
from devprof.errors import PluginContractError
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, Flow, GenericTraceActivity, ResourceInfo
from tests.unit.capture.plugins import KERNEL


class Hostile(GenericTraceActivity):
    """Does something when its start is read."""

    __slots__ = ("does",)

    def __init__(self, does: Callable[[], Any]) -> None:
        self.does = does
        super().__init__(ActivityType.CONCURRENT_KERNEL, "k", 1, 2)

    @property
    def start_ns(self) -> int:
        return self.does()  # type: ignore[no-any-return]

    @start_ns.setter
    def start_ns(self, value: int) -> None: ...


def _collector(limit: int = 1_000_000, clock: str = "unix_ns") -> tuple[Collector, PluginLedger]:
    ledger = PluginLedger("demo")
    return Collector(ledger, clock=clock, limit=limit), ledger


def _records(logger: Collector) -> list[GenericTraceActivity]:
    logger.close()
    return [activity for batch in logger.batches for activity in batch.activities()]


def _batch(n: int, clock: str = "unix_ns") -> ActivityBatch:
    return ActivityBatch.from_columns(("k",), activity_type=5, name=0, start=[1] * n, end=2, clock=clock)


# -- what is taken ----------------------------------------------------------------------------------------------------


def test_records_come_out_in_the_order_in_which_they_went_in() -> None:
    logger, ledger = _collector()
    first, last = (dataclasses.replace(KERNEL, id=i) for i in (1, 4))
    logger.handle_activity(first)
    logger.handle_activities(ActivityBatch.from_activities([dataclasses.replace(KERNEL, id=i) for i in (2, 3)]))
    logger.handle_activity(last)
    assert [record.id for record in _records(logger)] == [1, 2, 3, 4]
    assert ledger == PluginLedger("demo")


def test_records_are_flushed_into_batches_of_a_bounded_size() -> None:
    logger, _ = _collector()
    for _ in range(collector._FLUSH_ROWS + 1):
        logger.handle_activity(KERNEL)
    logger.close()
    assert [len(batch) for batch in logger.batches] == [collector._FLUSH_ROWS, 1]


def test_one_object_filled_again_for_every_record_gives_different_records() -> None:
    logger, _ = _collector()
    reused = dataclasses.replace(KERNEL)
    for reused.id in range(3):
        logger.handle_activity(reused)
    assert [record.id for record in _records(logger)] == [0, 1, 2]


def test_single_records_are_on_the_sessions_clock() -> None:
    logger, _ = _collector(clock="ticks")
    logger.handle_activity(KERNEL)
    logger.handle_activities(_batch(1, "ticks"))
    logger.handle_activities(_batch(1, "unix_ns"))
    logger.close()
    assert [batch.clock for batch in logger.batches] == ["ticks", "ticks", "unix_ns"]


def test_an_empty_batch_is_no_batch() -> None:
    logger, ledger = _collector()
    logger.handle_activities(_batch(1).take(slice(0)))
    logger.close()
    assert (logger.batches, ledger) == ([], PluginLedger("demo"))


@pytest.mark.parametrize(
    "name", ["", "\ud800", 'quote " back \\ tab \t newline \n nul \0', "ядро", "k" * 100_000, "🚀"]
)
def test_any_text_is_a_name(name: str) -> None:
    logger, ledger = _collector()
    record = dataclasses.replace(KERNEL, activity_name=name, metadata={name: name})
    logger.handle_activity(record)
    assert _records(logger) == [record]
    assert ledger == PluginLedger("demo")


def test_numbers_that_are_not_finite_are_kept_for_those_who_can_show_them() -> None:
    logger, ledger = _collector()
    logger.handle_activity(dataclasses.replace(KERNEL, metadata={"x": float("nan"), "y": float("inf")}))
    [record] = _records(logger)
    assert repr(record.metadata) == "{'x': nan, 'y': inf}"
    assert ledger.rejected == {}


def test_two_types_under_one_key_make_two_batches_and_lose_nothing() -> None:
    logger, ledger = _collector()
    values: list[Any] = [1, "one", 2, "two", (1, 2), (1, 2, 3), (3, 4), True]
    records = [dataclasses.replace(KERNEL, id=i, metadata={"k": value}) for i, value in enumerate(values)]
    for record in records:
        logger.handle_activity(record)
    assert sorted(_records(logger), key=lambda record: record.id) == records
    assert [len(batch) for batch in logger.batches] == [2, 2, 2, 1, 1]
    assert ledger == PluginLedger("demo")


def test_a_type_of_its_own_for_every_record_still_ends_in_few_batches_at_a_time() -> None:
    logger, ledger = _collector()
    records = [dataclasses.replace(KERNEL, id=i, metadata={"k": (0,) * i}) for i in range(40)]
    for record in records:
        logger.handle_activity(record)
        assert len(logger._builders) <= collector._MOST_BUILDERS
    assert _records(logger) == records
    assert ledger == PluginLedger("demo")


# -- what is rejected -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"start_ns": 2**70}, "start_ns is out of range"),
        ({"end_ns": None}, "end_ns is a NoneType"),
        ({"start_ns": float("nan")}, "start_ns is a float"),
        ({"start_ns": 1.0}, "start_ns is a float"),
        ({"id": "1"}, "id is a str"),
        ({"linked": b"1"}, "linked is a bytes"),
        ({"device": 2**31}, "device is out of range"),
        ({"activity_name": b"k"}, "activity_name is a bytes"),
        ({"activity_name": None}, "activity_name is a NoneType"),
        ({"activity_type": "kernel"}, "activity_type is a str"),
        ({"activity_type": 300}, "activity_type is out of range"),
        ({"flow": (1, 2, True)}, "flow is a tuple"),
        ({"flow": Flow(1, -1, True)}, "flow.type is out of range"),
        ({"metadata": None}, "metadata is a NoneType"),
        ({"metadata": {1: 2}}, "a key of metadata is a int"),
        ({"metadata": {"k": object()}}, "a metadata value is a object"),
        ({"metadata": {"k": 2**70}}, "a metadata number is out of range"),
        ({"counter_values": {"c": "1"}}, "a counter value is a str"),
        ({"counter_values": [1]}, "counter_values is a list"),
    ],
)
def test_a_malformed_record_is_rejected_alone_with_what_is_wrong(changes: dict[str, Any], reason: str) -> None:
    logger, ledger = _collector()
    for record in (KERNEL, dataclasses.replace(KERNEL, **changes), KERNEL):
        logger.handle_activity(record)
    assert _records(logger) == [KERNEL, KERNEL]
    assert ledger == PluginLedger("demo", rejected=Counter({f"malformed record: {reason}": 1}))


def test_a_record_whose_field_was_deleted_is_rejected() -> None:
    logger, ledger = _collector()
    record = dataclasses.replace(KERNEL)
    del record.end_ns
    logger.handle_activity(record)
    assert ledger.rejected == {"malformed record: reading it raised AttributeError": 1}


def test_a_record_that_raises_when_it_is_read_is_rejected() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    logger, ledger = _collector()
    logger.handle_activity(Hostile(fail))
    logger.handle_activity(KERNEL)
    assert _records(logger) == [KERNEL]
    assert ledger.rejected == {"malformed record: reading it raised ZeroDivisionError": 1}


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_record_that_ends_the_program_when_it_is_read_stops_its_plugin_only(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    logger, ledger = _collector()
    logger.handle_activity(KERNEL)
    with pytest.raises(error):
        logger.handle_activity(Hostile(fail))
    assert _records(logger) == [KERNEL]
    assert ledger == PluginLedger("demo")


@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [
        ("handle_activity", None, "got a NoneType, expected a GenericTraceActivity"),
        ("handle_activity", {"name": "k"}, "got a dict, expected a GenericTraceActivity"),
        ("handle_activities", [KERNEL], "got a list, expected a ActivityBatch"),
        ("handle_device_info", "npu", "got a str, expected a DeviceInfo"),
        ("handle_resource_info", DeviceInfo(0, "npu"), "got a DeviceInfo, expected a ResourceInfo"),
    ],
)
def test_something_else_than_asked_for_is_the_plugins_mistake(method: str, value: object, expected: str) -> None:
    logger, _ = _collector()
    with pytest.raises(PluginContractError, match=rf"^plugin 'demo', logger\.{method}: {expected}$"):
        getattr(logger, method)(value)


def test_a_batch_on_a_clock_that_nobody_named_is_the_plugins_mistake() -> None:
    logger, ledger = _collector(clock="ticks")
    with pytest.raises(PluginContractError, match="the batch's clock is 'other', expected 'ticks'"):
        logger.handle_activities(_batch(3, "other"))
    assert _records(logger) == []
    assert ledger == PluginLedger("demo")


# -- the limit --------------------------------------------------------------------------------------------------------


def test_a_flood_is_cut_at_the_limit_and_the_rest_is_counted() -> None:
    logger, ledger = _collector(limit=10)
    for _ in range(7):
        logger.handle_activity(KERNEL)
    logger.handle_activities(_batch(5))
    logger.handle_activities(_batch(1000))
    for _ in range(20):
        logger.handle_activity(KERNEL)
    assert len(_records(logger)) == 10
    assert ledger.dropped == {"record limit reached": 2 + 1000 + 20}


def test_a_rejected_record_does_not_use_up_the_limit() -> None:
    logger, ledger = _collector(limit=2)
    for name in ("a", None, "b", "c"):
        logger.handle_activity(dataclasses.replace(KERNEL, activity_name=name))  # type: ignore[arg-type]
    assert [record.activity_name for record in _records(logger)] == ["a", "b"]
    assert (ledger.dropped.total(), ledger.rejected.total()) == (1, 1)


def test_the_limit_is_the_environments_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_MAX_RECORDS", "3")
    ledger = PluginLedger("demo")
    logger = Collector(ledger, clock="unix_ns")
    logger.handle_activities(_batch(4))
    assert (len(_records(logger)), ledger.dropped.total()) == (3, 1)


# -- what a vendor lost -----------------------------------------------------------------------------------------------


def test_losses_are_added_by_reason_and_unknown_is_not_zero() -> None:
    logger, ledger = _collector()
    for count in (3, 0, np.int64(4), None, None):
        logger.handle_dropped(count, "buffer full")  # type: ignore[arg-type]
    logger.handle_dropped(None, "ring overrun")
    assert (ledger.dropped, ledger.lost_unknown) == ({"buffer full": 7}, ["buffer full", "ring overrun"])
    assert {type(count) for count in ledger.dropped.values()} == {int}


@pytest.mark.parametrize("count", [-1, -(2**70), 1.5, float("nan"), "3", b"3", [3]])
def test_a_loss_that_is_no_number_of_records_is_the_plugins_mistake(count: Any) -> None:
    logger, ledger = _collector()
    with pytest.raises(PluginContractError, match=r"logger\.handle_dropped: count is .*; expected 0 or more, or None"):
        logger.handle_dropped(count, "buffer full")
    assert ledger == PluginLedger("demo")


def test_a_loss_without_words_is_the_plugins_mistake() -> None:
    logger, _ = _collector()
    with pytest.raises(PluginContractError, match="got a NoneType, expected a str"):
        logger.handle_dropped(1, None)  # type: ignore[arg-type]


def test_reasons_that_never_repeat_do_not_fill_the_memory() -> None:
    logger, ledger = _collector()
    for i in range(1000):
        logger.handle_dropped(2, f"buffer at {i:#x} full")
        logger.handle_dropped(None, f"ring at {i:#x} overrun")
    assert (len(ledger.dropped), ledger.dropped.total()) == (collector._MOST_REASONS + 1, 2000)
    assert ledger.dropped["other reasons"] == 2 * (1000 - collector._MOST_REASONS)
    assert len(ledger.lost_unknown) == collector._MOST_REASONS


def test_a_reason_as_long_as_a_book_is_cut() -> None:
    logger, ledger = _collector()
    logger.handle_dropped(1, "x" * 10**6)
    logger.handle_dropped(None, "y" * 10**6)
    assert (ledger.dropped, ledger.lost_unknown) == ({"x" * 200: 1}, ["y" * 200])


# -- the end ----------------------------------------------------------------------------------------------------------


def test_after_the_close_every_call_fails_and_changes_nothing() -> None:
    logger, ledger = _collector()
    logger.handle_activity(KERNEL)
    logger.close()
    logger.close()
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("handle_activity", (KERNEL,)),
        ("handle_activities", (_batch(1),)),
        ("handle_device_info", (DeviceInfo(0, "npu"),)),
        ("handle_resource_info", (ResourceInfo(0, 0, "stream"),)),
        ("handle_dropped", (1, "late")),
        ("handle_dropped", (None, "late")),
    ]
    for method, arguments in calls:
        with pytest.raises(PluginContractError, match=f"logger.{method}: called after the hook that got it ended"):
            getattr(logger, method)(*arguments)
    assert (len(logger.batches), logger.device_infos, logger.resource_infos) == (1, [], [])
    assert ledger == PluginLedger("demo")


def test_a_call_that_hangs_over_the_close_neither_blocks_it_nor_writes_afterwards() -> None:
    logger, ledger = _collector()
    entered, release, late = threading.Event(), threading.Event(), list[BaseException]()

    def slow() -> str:
        entered.set()
        release.wait(60)
        return "not a number"

    def write() -> None:
        try:
            logger.handle_activity(Hostile(slow))
        except PluginContractError as error:
            late.append(error)

    logger.handle_activity(KERNEL)
    writer = threading.Thread(target=write)
    writer.start()
    entered.wait(60)
    logger.close()
    release.set()
    writer.join(60)
    assert (len(_records(logger)), ledger, len(late)) == (1, PluginLedger("demo"), 1)


def test_threads_that_write_while_it_closes_lose_nothing_that_was_taken() -> None:
    logger, ledger = _collector()
    taken = [0] * 4

    def write(i: int) -> None:
        try:
            while True:
                logger.handle_activities(_batch(1))
                taken[i] += 1
        except PluginContractError:
            return

    writers = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for writer in writers:
        writer.start()
    while sum(taken) < 100:
        pass
    logger.close()
    for writer in writers:
        writer.join(60)
    assert len(_records(logger)) == sum(taken)
    assert ledger == PluginLedger("demo")
