"""From a launch to the record that devprof is given: whole, linked to its op, and with nothing lost unsaid."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import pytest
from cuda_cupti.external_ids import OP_KIND, USER_KIND
from cuda_cupti.layouts import ActivityKind

from devprof.model import ActivityType

KERNEL, RUNTIME = ActivityType.CONCURRENT_KERNEL, ActivityType.CUDA_RUNTIME


def test_a_kernel_keeps_the_vendors_number_the_op_and_the_user_range_apart(stand_in: Any, capture: Any) -> None:
    numbers = []

    def work(session: Any) -> None:
        session.push_user_correlation_id(4)
        session.push_correlation_id(2**62 + 5)
        numbers.append(stand_in.kernel("void f<int>()", device=1, stream=9))
        session.pop_correlation_id()
        session.pop_user_correlation_id()
        numbers.append(stand_in.kernel())

    logger = capture(work)
    first, second = logger.of(KERNEL)
    assert (first.activity_name, first.device, first.resource) == ("void f<int>()", 1, 9)
    assert (first.id, first.linked, first.linked_user) == (numbers[0], 2**62 + 5, 4)
    assert (second.activity_name, second.id, second.linked, second.linked_user) == ("k", numbers[1], 0, 0)


def test_the_innermost_id_counts_and_an_exception_leaves_nothing_on_the_stack(stand_in: Any, capture: Any) -> None:
    depths = []

    def work(session: Any) -> None:
        session.push_correlation_id(1)
        try:
            session.push_correlation_id(2)
            stand_in.kernel()
            raise KeyError
        except KeyError:
            session.pop_correlation_id()
        stand_in.kernel()
        session.pop_correlation_id()
        session.pop_correlation_id()  # one too many takes nothing
        depths.append(stand_in.depth(OP_KIND))

    assert [one.linked for one in capture(work).of(KERNEL)] == [2, 1]
    assert depths == [0]


def test_an_id_that_an_earlier_session_left_is_none_of_this_one_and_is_taken_off(
    stand_in: Any, capture: Any, configure: Any, process: Any
) -> None:
    capture(lambda session: session.push_correlation_id(7))  # stopped inside the op
    session = configure()
    session.start()
    stand_in.kernel()
    session.push_correlation_id(7)
    stand_in.kernel()
    depth = stand_in.depth(OP_KIND)
    session.pop_correlation_id()
    session.stop()
    assert [one.linked for one in process(session).of(KERNEL)] == [0, 7]
    assert (depth, stand_in.depth(OP_KIND)) == (1, 0)


@pytest.mark.parametrize("kind", [OP_KIND, USER_KIND])
def test_ids_that_another_client_pushed_stay_on_the_stack_and_are_nobodys(
    stand_in: Any, capture: Any, kind: int
) -> None:
    stand_in.push_foreign(kind, 12)

    def work(session: Any) -> None:
        stand_in.kernel()
        session.pop_correlation_id()
        session.pop_user_correlation_id()

    assert [(one.linked, one.linked_user) for one in capture(work).of(KERNEL)] == [(0, 0)]
    assert stand_in.depth(kind) == 1


def test_one_pop_too_many_takes_nothing_of_another_client(stand_in: Any, capture: Any) -> None:
    stand_in.push_foreign(OP_KIND, 12)
    capture(lambda session: [session.push_correlation_id(1), *(session.pop_correlation_id() for _ in range(3))])
    assert stand_in.depth(OP_KIND) == 1


def test_the_end_of_a_range_after_the_stop_takes_its_id_off(stand_in: Any, configure: Any) -> None:
    session = configure()
    session.start()
    session.push_correlation_id(1)
    session.push_user_correlation_id(2)
    session.stop()
    assert (stand_in.depth(OP_KIND), stand_in.depth(USER_KIND)) == (1, 1)
    session.pop_correlation_id()
    session.pop_user_correlation_id()
    assert (stand_in.depth(OP_KIND), stand_in.depth(USER_KIND)) == (0, 0)


@pytest.mark.parametrize("kind", [OP_KIND, USER_KIND])
def test_where_a_push_was_refused_nothing_of_another_client_is_taken_off(
    stand_in: Any, capture: Any, kind: int
) -> None:
    stand_in.push_foreign(kind, 12)

    def work(session: Any) -> None:
        user = kind == USER_KIND
        push = session.push_user_correlation_id if user else session.push_correlation_id
        pop = session.pop_user_correlation_id if user else session.pop_correlation_id
        push(1)
        stand_in.fail["cuptiActivityPushExternalCorrelationId"] = 8
        push(2)
        stand_in.fail.clear()
        pop()
        stand_in.kernel()
        pop()

    logger = capture(work)
    (kernel,) = logger.of(KERNEL)
    assert (kernel.linked_user if kind == USER_KIND else kernel.linked) == 1
    assert stand_in.depth(kind) == 1
    assert len(logger.session.errors()) == 1  # type: ignore[attr-defined]


def test_a_pop_that_cupti_refuses_is_told_and_made_good_at_the_end_of_the_range_around(
    stand_in: Any, capture: Any
) -> None:
    def work(session: Any) -> None:
        session.push_correlation_id(1)
        session.push_correlation_id(2)
        stand_in.fail["cuptiActivityPopExternalCorrelationId"] = 8
        session.pop_correlation_id()
        stand_in.fail.clear()
        stand_in.kernel("linked to what is over")
        session.pop_correlation_id()
        stand_in.kernel("after")

    logger = capture(work)
    assert [one.linked for one in logger.of(KERNEL)] == [2, 0]
    assert logger.session.errors() == [  # type: ignore[attr-defined]
        "CUPTI did not take back 1 external correlation id(s); work after those ops may be linked to them"
    ]
    assert stand_in.depth(OP_KIND) == 0


def test_what_a_refused_pop_left_is_taken_off_in_the_next_session(stand_in: Any, capture: Any) -> None:
    def work(session: Any) -> None:
        session.push_correlation_id(1)
        stand_in.fail["cuptiActivityPopExternalCorrelationId"] = 8
        session.pop_correlation_id()
        stand_in.fail.clear()

    capture(work)
    assert stand_in.depth(OP_KIND) == 1
    capture(lambda session: [session.push_correlation_id(1), session.pop_correlation_id()])
    assert stand_in.depth(OP_KIND) == 0


def test_pushes_outside_of_a_session_do_not_reach_cupti(stand_in: Any, configure: Any) -> None:
    session = configure()
    session.push_correlation_id(1)
    session.pop_correlation_id()
    assert stand_in.calls["cuptiActivityPushExternalCorrelationId"] == 0


def test_each_thread_has_its_own_ids_and_calls_stand_on_it(stand_in: Any, capture: Any) -> None:
    natives = {}

    def on_thread(session: Any, op: int) -> None:
        session.push_correlation_id(op)
        stand_in.kernel(f"k{op}")
        natives[op] = threading.get_native_id()
        session.pop_correlation_id()

    def work(session: Any) -> None:
        threads = [threading.Thread(target=on_thread, args=(session, op)) for op in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    logger = capture(work)
    assert {one.activity_name: one.linked for one in logger.of(KERNEL)} == {"k1": 1, "k2": 2}
    assert {one.linked: one.thread_id for one in logger.of(RUNTIME)} == natives


def test_one_launch_of_a_graph_gives_all_its_kernels_and_they_name_their_nodes(stand_in: Any, capture: Any) -> None:
    logger = capture(lambda session: stand_in.kernel("node", n=3))
    kernels = logger.of(KERNEL)
    assert {one.id for one in kernels} == {one.id for one in logger.of(RUNTIME)}
    assert [(one.metadata["graph id"], one.metadata["graph node id"]) for one in kernels] == [(9, 1), (9, 2), (9, 3)]


def test_many_buffers_on_threads_that_python_did_not_make_lose_nothing(stand_in: Any, capture: Any) -> None:
    def work(session: Any) -> None:
        for i in range(60):
            stand_in.kernel(f"k{i % 5}", n=1000)  # more than three buffers

    logger = capture(work)
    assert stand_in.requests >= 3
    assert sorted({one.activity_name for one in logger.of(KERNEL)}) == [f"k{i}" for i in range(5)]
    assert (len(logger.of(KERNEL)), logger.dropped, logger.session.errors()) == (60_000, [], [])


def test_work_that_still_runs_at_the_stop_is_in_with_its_end(stand_in: Any, capture: Any) -> None:
    logger = capture(lambda session: stand_in.kernel("slow", runs=True))
    assert [one.activity_name for one in logger.of(KERNEL)] == ["slow"]


def test_work_on_contexts_of_the_programs_own_is_waited_for_too(stand_in: Any, capture: Any) -> None:
    stand_in.waits_in_vain = True

    def work(session: Any) -> None:
        stand_in.kernel("own context", runs=True)
        threading.Timer(0.4, stand_in.end_all).start()

    logger = capture(work)
    assert [one.activity_name for one in logger.of(KERNEL)] == ["own context"]
    assert logger.session.errors() == []  # type: ignore[attr-defined]


def test_what_cupti_dropped_is_counted_and_earlier_losses_are_not_ours(stand_in: Any, capture: Any) -> None:
    stand_in.dropped = 99

    def work(session: Any) -> None:
        stand_in.lose = 2
        for _ in range(5):
            stand_in.kernel()

    logger = capture(work)
    assert (len(logger.of(KERNEL)), logger.dropped) == (3, [(2, "CUPTI had no buffer for them")])


def test_a_count_that_cupti_cannot_give_is_unknown_and_not_zero(stand_in: Any, capture: Any) -> None:
    stand_in.fail["cuptiActivityGetNumDroppedRecords"] = 1
    assert capture(lambda session: stand_in.kernel()).dropped == [
        (None, "CUPTI does not say how many records it dropped")
    ]


def test_the_end_of_a_buffer_that_cannot_be_read_is_said_to_be_lost(stand_in: Any, capture: Any) -> None:
    def work(session: Any) -> None:
        stand_in.kernel()
        stand_in.raw(b"\xff" * 64)

    logger = capture(work)
    assert len(logger.of(KERNEL)) == 1
    assert logger.dropped == [(None, "the end of an activity buffer that cannot be read")]
    (note,) = logger.session.get_metadata()["CUPTI notes"]  # type: ignore[attr-defined]
    assert note.startswith(f"an activity buffer could not be read on: unknown kind {0xFFFFFFFF} at byte ")


def test_only_the_first_few_buffers_that_cannot_be_read_are_told_one_by_one(
    stand_in: Any, configure: Any, process: Any, flushed: Any
) -> None:
    session = configure()
    session.start()
    for _ in range(5):
        stand_in.raw(b"\xff" * 64)
        flushed(session)
    session.stop()
    process(session)
    assert len(session.get_metadata()["CUPTI notes"]) == 3


def test_noise_is_not_even_recorded(stand_in: Any, capture: Any) -> None:
    def work(session: Any) -> None:
        for kind, cbids in (
            (ActivityKind.RUNTIME, (17, 16, 10, 133, 134, 136)),
            (ActivityKind.DRIVER, (686, 392, 304)),
        ):
            for cbid in cbids:
                stand_in.call(cbid, kind)

    logger = capture(work)
    assert (logger.of(), logger.session.get_metadata()["CUPTI noise calls left out"]) == ([], 0)


def test_memory_that_comes_with_overhead_records_is_freed_once(client: Any, stand_in: Any, process: Any) -> None:
    from cuda_cupti.profiler import CudaProfiler, Source

    from devprof.contract import SessionConfig

    freed: list[int] = []
    profiler = CudaProfiler(lambda: Source(client, free=freed.append, is_alone=lambda host: None))
    session = profiler.configure({ActivityType.OVERHEAD}, SessionConfig(host="python"))
    assert session is not None
    session.start()
    stand_in.overhead(0x5000)
    stand_in.overhead(0)
    stand_in.overhead(0x6000, kind=1)  # of a kind that has none: whatever that is, it is not ours
    session.stop()
    assert (len(process(session).of(ActivityType.OVERHEAD)), freed) == (3, [0x5000])


def test_what_is_paused_is_not_recorded_and_what_ran_before_is(stand_in: Any, capture: Any) -> None:
    def work(session: Any) -> None:
        stand_in.kernel("before", runs=True)
        session.toggle_collection_dynamic(False)
        stand_in.kernel("paused")
        session.toggle_collection_dynamic(True)
        stand_in.call(17)
        stand_in.kernel("after")

    logger = capture(work)
    assert [one.activity_name for one in logger.of(KERNEL)] == ["before", "after"]
    assert len(logger.of(RUNTIME)) == 2


def test_a_wait_stands_on_the_device_of_its_context_also_where_nothing_else_ran_there(
    stand_in: Any, capture: Any
) -> None:
    def work(session: Any) -> None:
        stand_in.kernel(device=0)
        for device in (1, 0):
            stand_in.wait(device)

    logger = capture(work, KERNEL, ActivityType.CUDA_SYNC)
    found = [(one.device, one.metadata["context"]) for one in logger.of(ActivityType.CUDA_SYNC)]
    assert found == [(1, 2), (0, 1)]
    infos = logger.session.get_resource_infos()
    assert [info.device_id for info in infos if info.name == "device (sync)"] == [0, 1]


def test_a_wait_that_is_handed_over_before_the_stop_stands_on_its_device_too(
    stand_in: Any, configure: Any, flushed: Any
) -> None:
    session = configure(KERNEL, ActivityType.CUDA_SYNC)
    session.start()
    stand_in.kernel(device=0)
    stand_in.wait(1)
    piece = flushed(session)
    session.stop()
    assert [one.device for one in piece.of(ActivityType.CUDA_SYNC)] == [1]


def test_events_come_with_waits_and_not_by_themselves(stand_in: Any, configure: Callable[..., Any]) -> None:
    usual = configure(*(set(ActivityType) - {ActivityType.CUDA_SYNC}))
    both = configure(*ActivityType)
    alone = configure(ActivityType.CUDA_EVENT)
    on = [ActivityKind.CUDA_EVENT in session._capture.kinds for session in (usual, both, alone)]
    assert on == [False, True, True]


def test_the_graph_kind_that_hides_kernels_for_good_is_only_switched_on_by_request(
    configure: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = set(configure(*ActivityType)._capture.kinds)
    monkeypatch.setenv("DEVPROF_CUDA_GRAPHS", "1")
    asked, no_kernels = (set(configure(*types)._capture.kinds) for types in (ActivityType, [ActivityType.OVERHEAD]))
    assert not usual & {ActivityKind.GRAPH_TRACE, ActivityKind.KERNEL}
    assert (asked - usual, no_kernels) == ({ActivityKind.GRAPH_TRACE}, {ActivityKind.OVERHEAD})


def test_a_kernel_without_a_name_still_has_one(stand_in: Any, capture: Any) -> None:
    stand_in.texts["none"] = ctypes.create_string_buffer(b"")
    (kernel,) = capture(lambda session: stand_in.kernel("none")).of(KERNEL)
    assert kernel.activity_name.strip()


def test_a_session_hands_over_as_it_goes_and_nothing_twice(
    stand_in: Any, configure: Any, process: Any, flushed: Any
) -> None:
    session, pieces = configure(), []
    session.start()
    for piece in range(3):
        session.push_correlation_id(piece + 1)
        stand_in.kernel(f"k{piece}", device=piece % 2)
        pieces.append(flushed(session))
        session.pop_correlation_id()
    session.stop()
    rest = process(session)
    assert [[one.activity_name for one in piece.of(KERNEL)] for piece in pieces] == [["k0"], ["k1"], ["k2"]]
    assert [one.linked for piece in pieces for one in piece.of(KERNEL)] == [1, 2, 3]
    assert (rest.of(), rest.dropped) == ([], [])
    assert sorted(info.id for info in session.get_device_infos()) == [0, 1]


def test_a_kernel_that_ends_one_piece_after_its_launch_keeps_its_ids(
    stand_in: Any, configure: Any, process: Any, flushed: Any
) -> None:
    session = configure(ActivityType.CONCURRENT_KERNEL)
    session.start()
    session.push_correlation_id(5)
    stand_in.kernel("long", runs=True)
    stand_in._hand_back()  # the launch is out, its kernel runs on
    first = flushed(session)
    session.stop()
    assert (first.of(KERNEL), [one.linked for one in process(session).of(KERNEL)]) == ([], [5])
