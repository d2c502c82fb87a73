"""A capture switches on what it needs in the order that loses nothing, and leaves everything as it was."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from cuda_cupti.capture import Capture, Client
from cuda_cupti.coexistence import KINETO
from cuda_cupti.errors import CudaUnavailableError
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.profiler import CudaProfiler, Source

from devprof.contract import ClockDomain, SessionConfig, TraceStatus
from devprof.model import ActivityType

K = ActivityKind
KERNEL = ActivityType.CONCURRENT_KERNEL


def _positions(log: list[tuple[Any, ...]], *calls: tuple[Any, ...]) -> list[int]:
    return [max(i for i, call in enumerate(log) if call == wanted) for wanted in calls]


def test_the_stop_goes_from_the_calls_through_the_devices_to_the_last_buffer(stand_in: Any, capture: Any) -> None:
    marks = []

    def work(session: Any) -> None:
        stand_in.kernel()
        marks.append(len(stand_in.log))

    capture(work)
    log = stand_in.log[marks[0] :]
    steps = [
        log.index(("cuptiActivityDisable", K.RUNTIME)),
        log.index(("cuCtxSynchronize", None)),
        log.index(("cuptiActivityFlushAll", 0)),
        log.index(("cuptiActivityDisable", K.CONCURRENT_KERNEL)),
        log.index(("cuptiActivityFlushAll", 1)),
        log.index(("cuptiActivityGetNumDroppedRecords", None)),
    ]
    assert steps == sorted(steps)
    assert log.count(("cuCtxSynchronize", None)) == 2  # both devices


@pytest.mark.usefixtures("without_frameworks")
def test_nothing_of_cupti_is_switched_on_before_the_start_or_left_on_after_the_stop(
    stand_in: Any, configure: Callable[..., Any]
) -> None:
    before = (set(), 0, {5: 0, 9: 1}, 0)
    session = configure()
    assert (stand_in.enabled, stand_in.thread_ids, stand_in.attributes, stand_in.subscriber) == before
    session.start()
    assert (K.CONCURRENT_KERNEL in stand_in.enabled, stand_in.thread_ids, stand_in.attributes[5]) == (True, 1, 1)
    session.stop()
    assert (stand_in.enabled, stand_in.thread_ids, stand_in.attributes, stand_in.subscriber) == before


@pytest.mark.usefixtures("without_frameworks")
@pytest.mark.parametrize(
    "function",
    [
        "cuptiActivityRegisterCallbacks",
        ("cuptiActivityEnable", K.MEMCPY),
        ("cuptiActivityEnable", K.CONCURRENT_KERNEL),
    ],
)
def test_a_start_that_fails_puts_everything_back_and_says_what_is_involved(
    stand_in: Any, configure: Callable[..., Any], function: Any
) -> None:
    threads = threading.active_count()
    session = configure()
    stand_in.fail[function] = 35
    with pytest.raises(CudaUnavailableError) as raised:
        session.start()
    said = str(raised.value)
    parts = ["ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0", "Stand-in GPU", "CUDA 13.0", "libcupti.so.13"]
    assert [part for part in parts if part not in said] == []
    assert (stand_in.enabled, stand_in.thread_ids, stand_in.attributes[5], threading.active_count()) == (
        set(),
        0,
        0,
        threads,
    )
    session.stop()
    stand_in.fail.clear()
    again = configure()
    again.start()
    again.stop()


def test_a_kind_that_cannot_be_switched_on_is_told_and_the_others_are_recorded(stand_in: Any, capture: Any) -> None:
    stand_in.fail["cuptiActivityEnable", K.MEMCPY2] = 27
    logger = capture(lambda session: stand_in.kernel())
    assert len(logger.of(KERNEL)) == 1
    (error,) = logger.session.errors()
    assert error.startswith("cuptiActivityEnable(MEMCPY2) answered 27")


def test_one_capture_at_a_time_can_record(configure: Callable[..., Any]) -> None:
    first, second = configure(), configure()
    first.start()
    with pytest.raises(CudaUnavailableError, match="another capture"):
        second.start()
    second.stop()
    first.stop()
    second.start()
    second.stop()
    assert second.status() is TraceStatus.PROCESSING


def test_another_client_that_registered_in_between_does_not_keep_the_records(stand_in: Any, capture: Any) -> None:
    assert len(capture(lambda session: stand_in.kernel()).of(KERNEL)) == 1
    stand_in._callbacks = (None, None)  # as torch.profiler does at each start: the later registration wins
    assert len(capture(lambda session: stand_in.kernel()).of(KERNEL)) == 1


def test_a_torch_profile_that_took_cupti_over_keeps_what_it_switched_on(
    stand_in: Any, configure: Any, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_cupti.capture.LATE_BUFFERS_S", 0.01)
    session = configure(KERNEL)
    session._capture.taken_over_by = lambda: KINETO
    session.start()
    stand_in.kernel()
    on = set(stand_in.enabled)
    before = stand_in.calls["cuptiActivityFlushAll"]
    session.stop()
    assert (stand_in.enabled, stand_in.calls["cuptiActivityFlushAll"] - before) == (on, 0)
    assert (stand_in.thread_ids, stand_in.attributes[5]) == (0, 0)  # which the other client knows nothing of
    assert len(session.errors()) == 1
    assert session.errors()[0].startswith("torch.profiler (Kineto) began while CUDA was recorded")
    logger = process(session)
    assert (logger.of(), logger.dropped) == ([], [(None, "CUPTI does not say how many records it dropped")])


def test_a_device_in_an_error_state_costs_no_records_and_is_named(stand_in: Any, capture: Any) -> None:
    stand_in.broken_device = 1
    logger = capture(lambda session: stand_in.kernel())
    assert len(logger.of(KERNEL)) == 1
    assert logger.session.errors() == ["device 1: CUDA_ERROR_OF_THE_STAND_IN (700) when it was waited for"]


def test_buffers_that_cupti_keeps_are_told_and_waited_for_no_more(
    stand_in: Any, capture: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_cupti.capture.UNFINISHED_WORK_S", 0.01)
    monkeypatch.setattr("cuda_cupti.capture.LATE_BUFFERS_S", 0.01)
    stand_in.holds = 0
    logger = capture(lambda session: stand_in.kernel("kept"))
    assert logger.of(KERNEL) == []
    assert logger.session.errors() == ["CUPTI did not give 1 activity buffer(s) back; their records are lost"]
    stand_in.holds = None
    after = capture(lambda session: stand_in.kernel("new"))
    assert ([one.activity_name for one in after.of(KERNEL)], after.session.errors()) == (["new"], [])
    assert client.exchange.strange == 0


def test_records_in_a_buffer_that_cupti_took_at_the_end_of_the_capture_before_are_this_ones(
    stand_in: Any, configure: Any, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = configure()
    session.start()
    kinds, finish = set(stand_in.enabled), session._collector.finish

    def in_the_middle_of_a_launch() -> None:
        stand_in.enabled = kinds
        stand_in.kernel("between")
        stand_in.enabled = set()
        finish()

    monkeypatch.setattr(session._collector, "finish", in_the_middle_of_a_launch)
    session.stop()
    flushed = stand_in.fail["cuptiActivityFlushAll", 1] = 999  # nor does CUPTI give it back at the start
    session = configure(KERNEL)
    session.start()
    stand_in.kernel("new")
    session.stop()
    found = [one.activity_name for one in process(session).of(KERNEL)]
    assert (found, flushed) == (["between", "new"], 999)


def test_where_a_kind_stays_on_after_a_capture_no_memory_is_lent_and_it_is_told(
    stand_in: Any, capture: Any, client: Client
) -> None:
    stand_in.fail["cuptiActivityDisable"] = 1
    logger = capture(lambda session: stand_in.kernel())
    assert len(logger.of(KERNEL)) == 1
    (error,) = logger.session.errors()
    assert error.startswith("CUPTI did not switch off MEMCPY, MEMSET, DRIVER, RUNTIME, CONCURRENT_KERNEL, OVERHEAD,")
    assert error.endswith(": cuptiActivityDisable answered 1 (CUPTI_ERROR_OF_THE_STAND_IN).")
    before = client.exchange.states()
    for _ in range(60):
        stand_in.kernel(n=1000)  # more than three buffers
    assert client.exchange.states() == before
    stand_in.fail.clear()
    after = capture(lambda session: stand_in.kernel("new"))
    assert ([one.activity_name for one in after.of(KERNEL)], after.session.errors()) == (["new"], [])
    assert (stand_in.enabled, after.dropped) == (set(), [])


def test_a_thread_that_goes_on_launching_does_not_hold_up_the_stop(
    stand_in: Any, capture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, threads = threading.Event(), []

    def launch() -> None:
        while not over.is_set():
            stand_in.kernel("on and on")

    def work(session: Any) -> None:
        threads.append(threading.Thread(target=launch))
        threads[0].start()
        stand_in.kernel("k")

    waited = []
    monkeypatch.setattr("cuda_cupti.capture.Capture._wait_for_unfinished_work", lambda *_: waited.append(1))
    try:
        logger = capture(work)
    finally:
        over.set()
        threads[0].join()
    assert ([one.activity_name for one in logger.of(KERNEL)].count("k"), waited) == (1, [])
    assert logger.session.errors() == []


def test_a_push_that_cupti_refuses_is_counted(stand_in: Any, capture: Any) -> None:
    stand_in.fail["cuptiActivityPushExternalCorrelationId"] = 1
    logger = capture(lambda session: [session.push_correlation_id(1), stand_in.kernel()])
    assert logger.session.errors() == ["CUPTI refused 1 external correlation id(s); their work belongs to no op"]


def test_a_clock_that_cannot_be_read_at_the_stop_costs_no_records(stand_in: Any, capture: Any) -> None:
    def work(session: Any) -> None:
        stand_in.kernel()
        stand_in.fail["cuptiGetTimestamp"] = 999

    logger = capture(work)
    assert (len(logger.of(KERNEL)), logger.session.errors()) == (1, [])
    (note,) = logger.session.get_metadata()["CUPTI notes"]
    said = "whether the clock was moved during the capture is not known: cuptiGetTimestamp answered 999"
    assert note.startswith(said)


def test_flushes_that_fail_are_told_once_and_not_tried_for_two_seconds(stand_in: Any, capture: Any) -> None:
    def work(session: Any) -> None:
        stand_in.kernel()
        stand_in.fail["cuptiActivityFlushAll"] = 8

    logger = capture(work)
    assert [one.split(" (")[0] for one in logger.session.errors()] == [
        "cuptiActivityFlushAll(0) answered 8",
        "cuptiActivityFlushAll(1) answered 8",
        "CUPTI did not give 1 activity buffer(s) back; their records are lost",
    ]
    assert stand_in.calls["cuptiActivityFlushAll"] == 2


def test_a_flush_that_fails_while_work_is_waited_for_ends_the_waiting(
    stand_in: Any, capture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_cupti.capture.LATE_BUFFERS_S", 0.01)
    waited, real = [], Capture._wait_for_unfinished_work

    def broken(self: Capture, loans: int) -> None:
        waited.append(loans)
        stand_in.fail["cuptiActivityFlushAll", 0] = 8
        real(self, loans)

    def work(session: Any) -> None:
        stand_in.waits_in_vain = True
        stand_in.kernel(runs=True)
        stand_in.kernel()

    monkeypatch.setattr(Capture, "_wait_for_unfinished_work", broken)
    before = time.monotonic()
    logger = capture(work)
    assert (len(waited), time.monotonic() - before < 1) == (1, True)
    assert [one.split(" (")[0] for one in logger.session.errors()] == ["cuptiActivityFlushAll(0) answered 8"]


@pytest.mark.usefixtures("without_frameworks")
@pytest.mark.parametrize(
    ("function", "what", "left"),
    [
        (("cuptiSetThreadIdType", 0), "the numbering of threads", (1, 0)),
        ("cuptiActivitySetAttribute", "the clearing of buffers", (0, 1)),
    ],
)
def test_what_cannot_be_put_back_is_told_and_put_back_by_the_next_capture(
    stand_in: Any, capture: Any, function: Any, what: str, left: tuple[int, int]
) -> None:
    def work(session: Any) -> None:
        stand_in.fail[function] = 1

    first = capture(work)
    assert first.session.errors() == [f"CUPTI did not put back {what}; the next capture tries again"]
    assert (stand_in.thread_ids, stand_in.attributes[5]) == left
    stand_in.fail.clear()
    second = capture(lambda session: stand_in.kernel())
    assert (stand_in.thread_ids, stand_in.attributes[5], second.session.errors()) == (0, 0, [])


def test_requests_without_memory_and_buffers_that_nobody_lent_are_told(
    stand_in: Any, capture: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"strange": 5, "refused": 7}
    for name in counts:
        monkeypatch.setattr(type(client.exchange), name, property(lambda _, name=name: counts[name]))
    logger = capture(lambda session: counts.update(strange=7, refused=10))
    assert logger.session.errors() == [
        "there was no memory for 3 activity buffer(s); CUPTI dropped what they would have held"
    ]
    assert logger.session.get_metadata()["CUPTI notes"] == [
        "CUPTI gave back 2 activity buffer(s) that it did not hold; nothing was read from them"
    ]


def test_a_clock_that_is_not_the_hosts_is_measured_and_its_batches_say_so(
    stand_in: Any, client: Client, process: Any
) -> None:
    offset = -5_000_000_000
    real = stand_in._cuptiGetTimestamp

    def shifted(found: Any) -> None:
        real(found)
        found[0] += offset

    stand_in.functions["cuptiGetTimestamp"] = type(stand_in.functions["cuptiGetTimestamp"])(
        lambda found: shifted(found) or 0
    )
    other = Client(stand_in.access())
    session = CudaProfiler(lambda: Source(other, is_alone=lambda host: None)).configure(
        {KERNEL}, SessionConfig(host="python")
    )
    assert session is not None
    assert session.clock_domain() == ClockDomain("cupti", 1e9)
    session.start()
    stand_in.kernel()
    session.stop()
    assert {batch.clock for batch in process(session).batches} == {"cupti"}


def test_the_hosts_clock_needs_no_conversion(configure: Callable[..., Any]) -> None:
    assert configure().clock_domain() is None


def test_a_stop_by_another_thread_than_the_starts_is_as_good(stand_in: Any, configure: Any, process: Any) -> None:
    session = configure()
    for step in (session.start, stand_in.kernel, session.stop, session.stop):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert len(process(session).of(KERNEL)) == 1


def test_the_report_names_releases_losses_and_doubts(stand_in: Any, capture: Any) -> None:
    logger = capture(lambda session: stand_in.kernel())
    facts = logger.session.get_metadata()
    assert facts["CUPTI dropped records"] == 0
    assert facts["CUPTI libcupti"] == "/stand-in/libcupti.so.13 (given by a test), CUDA 13.0 (CUPTI API 130001)"
    assert "CUPTI notes" not in facts


def test_a_forked_child_of_a_recording_process_calls_nothing_and_ends(
    stand_in: Any, configure: Any, process: Any
) -> None:
    session = configure()
    session.start()
    session.push_correlation_id(3)
    before = stand_in.calls.total()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # everything that may be called there, within the test's time
        session.push_correlation_id(4)
        session.pop_correlation_id()
        session.toggle_collection_dynamic(False)
        logger = type("Logger", (), {"handle_activities": print, "handle_dropped": lambda *_: None})()
        session.flush_trace(logger)
        session.stop()
        session.process_trace(logger, lambda _: True, 0, 2**62)
        os.write(writing, f"{stand_in.calls.total() - before} {session.errors()}".encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    said = "0 ['the process was forked while CUDA was recorded; the records are the parent's']"
    assert os.read(reading, 1000).decode().replace('"', "'") == said
    stand_in.kernel()
    session.pop_correlation_id()
    session.stop()
    assert [one.linked for one in process(session).of(KERNEL)] == [3]
