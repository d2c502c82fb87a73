"""Host calls on the row of their thread: inside the op that made them, also where two clocks disagree a little."""

from __future__ import annotations

import os
import threading
import time

import toyland
from toyland import Deliver

import devprof
from devprof import correlation
from devprof.model import ActivityType, GenericTraceActivity

MOST_MOVED_NS = 2000


def test_a_call_that_sticks_out_of_its_op_by_a_clock_error_is_moved_in_and_others_stay(deliver: Deliver) -> None:
    """Calls begin at every microsecond before a moment in the op; each lands where the rule says, to the nanosecond."""
    said: dict[str, int] = {}

    def in_op() -> None:
        said["moment_ns"], said["op"] = time.time_ns(), correlation.current_op_id()

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        begin = max(start_ns, said["moment_ns"] - 400_000)
        return [
            GenericTraceActivity(
                ActivityType.PRIVATEUSE1_RUNTIME,
                f"call {at_ns}",
                at_ns,
                at_ns + 10,
                id=at_ns,
                thread_id=threading.get_native_id(),
                linked=said["op"],
            )
            for at_ns in range(begin, said["moment_ns"], 1000)
        ]

    session = deliver(script, body=lambda: toyland.run_in_op(in_op))
    slices = (event for event in session.trace["traceEvents"] if "dur" in event)
    at = {event["name"]: toyland.absolute_ns(session.trace, event) for event in slices}
    op_start_ns = at["toy::run"]
    calls = {int(name.split()[1]): where_ns for name, where_ns in at.items() if name.startswith("call ")}
    expected = {raw: op_start_ns if 0 < op_start_ns - raw <= MOST_MOVED_NS else raw for raw in calls}
    moved = sum(expected[raw] != raw for raw in calls)
    assert calls == expected
    assert moved > 0
    assert devprof.report_of(session.prof).moved_host_calls == moved


def test_host_calls_stand_on_the_row_of_their_process_and_thread(deliver: Deliver) -> None:
    """The row is the one that torch itself names; nothing of the device's row is on it."""

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        kind = ActivityType.PRIVATEUSE1_RUNTIME
        return [GenericTraceActivity(kind, "call", start_ns, start_ns + 5, device=1, resource=7, thread_id=4711)]

    session = deliver(script)
    (call,) = toyland.slices(session.trace, "privateuse1_runtime")
    assert (call["pid"], call["tid"]) == (os.getpid(), 4711)


def test_calls_that_are_linked_to_ops_that_were_not_running_are_called_out(deliver: Deliver) -> None:
    """A plugin that links with the vendor's own small numbers meets small op ids: every link is there, and wrong."""
    ids: list[int] = []

    def body() -> None:
        for _ in range(4):
            toyland.run_in_op(lambda: ids.append(correlation.current_op_id()))

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        kind = ActivityType.PRIVATEUSE1_RUNTIME
        return [
            GenericTraceActivity(
                kind, "call", start_ns, start_ns + 5, id=op, thread_id=threading.get_native_id(), linked=op
            )
            for op in ids[1:]
        ]

    session = deliver(script, body=body)
    notes = devprof.report_of(session.prof).notes
    assert len(notes) == 1
    assert notes[0].startswith("3 of 3 host calls are linked to an op that was not running at the call")


def test_records_with_an_op_id_that_nobody_had_are_called_out_though_others_are_linked(deliver: Deliver) -> None:
    """A few links by chance must not hide that the ids are wrong."""
    ids: list[int] = []

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        return [toyland.kernel(at=start_ns + 10, linked=ids[0]), toyland.kernel(at=start_ns + 200, linked=10**9)]

    session = deliver(script, body=lambda: toyland.run_in_op(lambda: ids.append(correlation.current_op_id())))
    assert (session.ledger.linked, session.ledger.device_work) == (1, 2)
    (complaint,) = devprof.report_of(session.prof).complaints()
    assert "1 records carry an op id that the host never gave" in complaint
