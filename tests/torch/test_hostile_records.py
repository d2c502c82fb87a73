"""What a trace cannot hold never gets into it, what it can is in it, and every record is in the account.

The rules of torch 2.13's writer: a quote in a name makes the file invalid, a backslash becomes a slash, one byte outside
printable ASCII turns a whole name into ``unknown``, ``kernel`` is printed ``Kernel``, short names are demangled in tables.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import toyland
from torch.autograd import DeviceType
from toyland import BOTH, Deliver, Runtime, assert_closes, kernel

import devprof
from devprof.model import (
    ActivityBatch,
    ActivityType,
    Flow,
    GenericTraceActivity,
    MetadataColumn,
    MetadataKind,
)
from devprof.torch.bridge import bridge

NAMES = {
    'say "hi"': "say 'hi'",
    "a\\b": "a/b",
    "tab\there": "tab here",
    "line\nbreak\r\n": "line break  ",
    "bell\x07": "bell",
    "nul\x00byte": "nulbyte",
    "\x00": "(unnamed)",
    "": "(unnamed)",
    "  ": "(unnamed)",
    "größe": "gr%C3%B6%C3%9Fe",
    "日本": "%E6%97%A5%E6%9C%AC",
    "\U0001f600": "%F0%9F%98%80",
    "lone \udc80 surrogate": "lone %ED%B2%80 surrogate",
    "kernel": "kernel ",
    "Pi": "Pi ",
    "Ov": "Ov ",
    "_Z3foov": "_Z3foov",
    "k": "k",
    "ProfilerStep#1": "ProfilerStep#1",
    "x" * 10_000: "x" * 4093 + "...",
    '"' * 10_000: "'" * 4093 + "...",
    "</script>{%s}%n": "</script>{%s}%n",
}


def test_hostile_names_are_in_the_file_as_printable_ascii_and_in_the_tables_alike(deliver: Deliver) -> None:
    session = deliver(lambda start_ns, end_ns: [kernel(name, at=start_ns + i) for i, name in enumerate(NAMES)])
    assert Counter(toyland.names(session.trace, "kernel")) == Counter(NAMES.values())
    shown = Counter(event.name for event in session.prof.events() if event.device_type == DeviceType.PrivateUse1)
    torchs_own = {"_Z3foov": "foo()", "ProfilerStep#1": "ProfilerStep*"}
    assert shown == Counter(torchs_own.get(name, name) for name in NAMES.values())
    notes = session.ledger.notes
    counted = ("text cleaned", "text shortened", "empty name", "name guarded")
    assert {key: notes[key] for key in counted} == {
        "text cleaned": 12,
        "text shortened": 2,
        "empty name": 3,
        "name guarded": 3,
    }
    assert_closes(session, len(NAMES))


RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a name that is bytes": ({"activity_name": b"k"}, "malformed record"),
    "no name": ({"activity_name": None}, "malformed record"),
    "a name that is a number": ({"activity_name": 7}, "malformed record"),
    "a time that no column holds": ({"end_ns": 2**80}, "malformed record"),
    "a time that is text": ({"start_ns": "now"}, "malformed record"),
    "a time that is not a number": ({"end_ns": math.nan}, "malformed record"),
    "a launch number that no column holds": ({"id": 2**64}, "malformed record"),
    "a device that no column holds": ({"device": 2**31}, "malformed record"),
    "a negative device": ({"device": -1}, "negative device index"),
    "a negative duration": ({"end_ns": 1}, "negative duration"),
    "no time at all": ({"start_ns": 0, "end_ns": 0}, "no timestamp"),
    "negative times": ({"start_ns": -5, "end_ns": -1}, "no timestamp"),
    "a kind that there is not": ({"activity_type": 99}, "unknown activity type"),
    "a kind that no column holds": ({"activity_type": 300}, "malformed record"),
    "an op": ({"activity_type": ActivityType.CPU_OP}, "activity type reserved for the host"),
    "a user range": ({"activity_type": ActivityType.USER_ANNOTATION}, "activity type reserved for the host"),
    "a host instant": ({"activity_type": ActivityType.CPU_INSTANT_EVENT}, "activity type reserved for the host"),
    "a Python function": ({"activity_type": ActivityType.PYTHON_FUNCTION}, "activity type reserved for the host"),
    "a kind that nobody asked for": ({"activity_type": ActivityType.CUDA_EVENT}, "activity type not requested"),
    "a flow that is none": ({"flow": (1, 2)}, "malformed record"),
    "metadata that is a list": ({"metadata": {"a": [1, {}]}}, "malformed record"),
    "metadata with a key that is not text": ({"metadata": {1: 2}}, "malformed record"),
    "metadata that is no mapping": ({"metadata": 3}, "malformed record"),
    "a counter that is text": ({"counter_values": {"c": "many"}}, "malformed record"),
}


@pytest.mark.parametrize("case", RECORDS)
def test_a_record_that_no_trace_can_hold_is_rejected_with_its_reason_and_its_neighbours_are_kept(
    deliver: Deliver, case: str
) -> None:
    fields, reason = RECORDS[case]

    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        yield kernel("before", at=start_ns)
        bad = kernel("bad", at=start_ns + 1)
        for field, value in fields.items():
            setattr(bad, field, value)
        yield bad
        yield kernel("after", at=start_ns + 2)

    session = deliver(script)
    assert toyland.names(session.trace, "kernel") == ["before", "after"]
    (found,) = session.ledger.rejected
    assert found.startswith(reason)
    assert session.ledger.rejected.total() == 1
    assert len(session.warned) == 1
    assert f"({found}: 1)" in session.warned[0]
    assert_closes(session, 3)


def test_one_bad_record_among_thousands_costs_only_itself(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        for i in range(20_000):
            yield kernel("k", at=start_ns, resource=2**70 if i in (7, 8192, 19_999) else 0)

    session = deliver(script)
    assert (session.ledger.emitted, session.ledger.rejected.total()) == (19_997, 3)
    assert_closes(session, 20_000)


def test_records_belong_to_the_window_that_they_started_in_and_keep_their_true_end(deliver: Deliver) -> None:
    second = 10**9
    window: list[tuple[int, int]] = []

    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        window.append((start_ns, end_ns))
        yield kernel("long before", at=start_ns - 2 * second)
        yield kernel("across the start", at=start_ns - second, ns=10 * second)
        yield kernel("one ns early", at=start_ns - 1)
        yield kernel("at the start", at=start_ns)
        yield kernel("across the end", at=end_ns - 1, ns=second)
        yield kernel("at the end", at=end_ns, ns=0)
        yield kernel("late", at=end_ns + 1)
        yield kernel("ten seconds late", at=end_ns + 10 * second)

    session = deliver(script)
    ((start_ns, end_ns),) = window
    shown = {
        event["name"]: (toyland.absolute_ns(session.trace, event), int(event["dur"] * 1000))
        for event in toyland.slices(session.trace, "kernel")
    }
    assert shown == {
        "at the start": (start_ns, 100),
        "across the end": (end_ns - 1, second),
        "at the end": (end_ns, 0),
    }
    assert session.ledger.dropped == {"before window": 3, "after window": 2}
    assert session.ledger.clean
    assert_closes(session, 8)


def test_work_whose_launch_came_before_the_window_leaves_with_it_and_late_work_of_a_launch_in_it_stays(
    deliver: Deliver,
) -> None:
    def launch(at: int, number: int) -> GenericTraceActivity:
        return GenericTraceActivity(ActivityType.PRIVATEUSE1_RUNTIME, "launch", at, at + 10, id=number)

    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        yield launch(start_ns - 50, 1)
        yield kernel("of an early launch", at=start_ns + 5, id=1)
        yield launch(end_ns - 1, 2)
        yield kernel("late, launched in time", at=end_ns + 50, id=2)

    session = deliver(script)
    assert toyland.names(session.trace, "kernel") == ["late, launched in time"]
    assert session.ledger.dropped == {"before window": 1, "launched outside window": 1}
    assert_closes(session, 4)


BIG = [2**31 + 5, 2**31 - 1, 2**32 + 1, 2**63 - 1, -1, -(2**31), -(2**63)]


@pytest.mark.parametrize("number", [*BIG, 1])
def test_any_launch_number_joins_a_launch_with_its_work(deliver: Deliver, number: int) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(lambda: runtime.launch(id=number)))
    (launch,) = toyland.slices(session.trace, "privateuse1_runtime")
    (work,) = toyland.slices(session.trace, "kernel")
    shared = launch["args"]["correlation"]
    assert shared == work["args"]["correlation"]
    assert 2**30 <= shared < 2**31
    ends = [(event["ph"], event["id"]) for event in toyland.slices(session.trace, "ac2g")]
    assert sorted(ends) == [("f", shared), ("s", shared)]
    assert_closes(session, 2)


@pytest.mark.parametrize("op", [2**31 + 5, 2**32 + 1, 2**63 - 1, -1, -(2**63)])
def test_an_op_id_that_the_host_never_gave_leaves_a_record_unlinked(deliver: Deliver, op: int) -> None:
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns, linked=op)])
    (work,) = toyland.slices(session.trace, "kernel")
    assert "External id" not in work["args"]
    assert [event.name for event in session.prof.events() if event.kernels] == []
    assert session.ledger.notes["op id unknown to the host"] == 1
    assert "0 of 1 device records linked" in session.warned[0]
    assert_closes(session, 1)


def test_an_op_id_whose_low_32_bits_are_another_ops_is_not_taken_for_it(deliver: Deliver) -> None:
    runtime = Runtime()

    def body() -> None:
        toyland.run_in_op(runtime.launch)
        ((op, _),) = runtime.seen
        runtime.launch("stranger", linked=op + 2**32)

    session = deliver(runtime.script, body=body)
    owned = [[one.name for one in event.kernels] for event in session.prof.events() if event.kernels]
    assert owned == [["k"]]
    assert session.ledger.notes["op id unknown to the host"] == 2
    assert_closes(session, 4)


@pytest.mark.parametrize(
    "options", [{}, {"with_stack": True, "profile_memory": True}], ids=["plain", "stacks and memory"]
)
def test_zero_ids_join_nothing_and_link_to_nothing(deliver: Deliver, options: dict[str, Any]) -> None:
    """Id 0 would find a Python frame or a memory event, and an unlinked host record with id 0 would own an op's kernels."""
    runtime = Runtime()

    def body() -> None:
        toyland.run_in_op(runtime.launch)
        for _ in range(3):
            runtime.launch("zero", id=0, linked=0)

    session = deliver(runtime.script, body=body, options=options)
    zeros = [
        event for event in toyland.slices(session.trace, "kernel", "privateuse1_runtime") if "zero" in event["name"]
    ]
    assert len(zeros) == 6
    assert len({event["args"]["correlation"] for event in zeros}) == 6
    assert all("External id" not in event["args"] for event in zeros)
    assert len(toyland.slices(session.trace, "ac2g")) == 2
    (op,) = [event for event in session.prof.events() if event.name == "toy::run"]
    assert op.self_device_time_total == pytest.approx(0.1)
    footer = sum(event.self_device_time_total for event in session.prof.key_averages())
    assert footer == pytest.approx(0.1 + 0.4)
    assert_closes(session, 8)


@pytest.mark.parametrize("user", [10**6, 2**31 + 5, 2**32 + 1, -1])
def test_a_user_id_that_the_host_never_gave_makes_no_range_on_the_device(deliver: Deliver, user: int) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(lambda: runtime.launch(linked_user=user)))
    assert toyland.names(session.trace, "kernel", "gpu_user_annotation") == ["k"]
    assert_closes(session, 2)


def test_an_ops_id_given_as_user_id_makes_no_range_on_the_device(deliver: Deliver) -> None:
    runtime = Runtime()

    def body() -> None:
        with torch.profiler.record_function("range"):
            toyland.run_in_op(runtime.launch)
        ((op, user),) = runtime.seen
        toyland.run_in_op(lambda: runtime.launch(linked_user=op))
        toyland.run_in_op(lambda: runtime.launch(linked_user=user + 2**32))

    session = deliver(runtime.script, body=body)
    assert toyland.names(session.trace, "gpu_user_annotation") == ["range"]


@pytest.mark.parametrize("stream", [2**31 - 1, 2**31, 2**40, 2**63 - 1, -1, -(2**63)])
def test_a_stream_of_any_number_is_on_a_row_of_its_own_with_a_name(deliver: Deliver, stream: int) -> None:
    session = deliver(
        lambda start_ns, end_ns: [kernel("a", at=start_ns, resource=stream), kernel("b", at=start_ns, resource=7)]
    )
    first, second = toyland.slices(session.trace, "kernel")
    assert first["tid"] != second["tid"]
    assert first["tid"] >= 0
    rows = [
        event["args"]["name"]
        for event in session.trace["traceEvents"]
        if event["name"] == "thread_name" and (event["pid"], event["tid"]) == (first["pid"], first["tid"])
    ]
    assert rows == [f"stream {stream}"]
    resources = [event.device_resource_id for event in session.prof.events() if event.name in "ab"]
    assert resources == [first["tid"], 7]
    assert_closes(session, 2)


@pytest.mark.parametrize("device", [99, 1000, 2**31 - 1])
def test_a_device_of_any_number_has_a_named_row(deliver: Deliver, device: int) -> None:
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns, device=device)])
    (work,) = toyland.slices(session.trace, "kernel")
    assert work["args"]["device"] == device
    rows = [
        event["args"]["name"]
        for event in session.trace["traceEvents"]
        if event["name"] == "process_name" and event["pid"] == work["pid"]
    ]
    assert rows == [f"{session.ledger.plugin} {device}"]
    assert_closes(session, 1)


def columns(start_ns: int, n: int = 3, **changes: Any) -> dict[str, Any]:
    return {"activity_type": 5, "name": 0, "start": np.full(n, start_ns), "end": np.full(n, start_ns + 5), **changes}


def test_batches_and_records_may_be_mixed(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        yield kernel("object", at=start_ns)
        yield ActivityBatch.from_columns(("batch",), **columns(start_ns))
        yield ActivityBatch.from_columns((), **columns(start_ns, 0))
        yield kernel("object", at=start_ns)

    session = deliver(script)
    assert toyland.names(session.trace, "kernel") == ["object", "batch", "batch", "batch", "object"]
    assert_closes(session, 5)


def test_a_bad_row_of_a_batch_costs_only_itself(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        yield ActivityBatch.from_columns(
            ("k", 'q"'),
            **columns(start_ns, 4, name=[0, 1, 0, 1], activity_type=[5, 5, 0, 200], device=[0, -1, 0, 0]),
            metadata={"m": MetadataColumn(MetadataKind.STRING, np.array([1, 1, 0, 0]))},
        )

    session = deliver(script)
    (work,) = toyland.slices(session.trace, "kernel")
    assert (work["name"], work["args"]["m"]) == ("k", "q'")
    assert session.ledger.rejected == {
        "activity type reserved for the host": 1,
        "negative device index": 1,
        "unknown activity type": 1,
    }
    assert_closes(session, 4)


def test_what_the_plugin_says_was_lost_is_in_the_account_and_unknown_is_not_zero(deliver: Deliver) -> None:
    session = deliver(
        lambda start_ns, end_ns: [kernel(at=start_ns)], dropped=[(3, "buffer full"), (0, "nothing"), (None, "overrun")]
    )
    assert session.ledger.dropped == {"buffer full": 3}
    assert session.ledger.lost_unknown == ["overrun"]
    assert "3 of 4 records were lost (buffer full: 3)" in session.warned[0]
    assert "an unknown number of records was lost (overrun)" in session.warned[0]
    assert_closes(session, 4)


def test_more_records_than_the_limit_are_dropped_and_counted(deliver: Deliver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_MAX_RECORDS", "10")

    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        for _ in range(3):
            yield ActivityBatch.from_columns(("k",), **columns(start_ns, 4))
        yield kernel(at=start_ns)

    session = deliver(script)
    assert len(toyland.slices(session.trace, "kernel")) == 10
    assert session.ledger.dropped == {"record limit reached": 3}
    assert_closes(session, 13)


def test_a_hostile_flow_draws_no_broken_arrow(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        flows = (Flow(1, 2, True), Flow(1, 2, True), Flow(1, 2, False), Flow(2**32 + 1, 2, False), Flow(9, 200, True))
        for i, flow in enumerate((*flows, Flow(0, 2, True))):
            yield kernel(f"k{i}", at=start_ns + i, flow=flow)

    session = deliver(script)
    ends = Counter((event["ph"], event["id"]) for event in toyland.slices(session.trace, "ac2g"))
    assert {count for (kind, _), count in ends.items() if kind == "s"} <= {1}
    assert {one for kind, one in ends if kind == "f"} <= {one for kind, one in ends if kind == "s"}
    assert_closes(session, 6)


def test_the_account_in_the_trace_is_the_report(deliver: Deliver) -> None:
    session = deliver(
        lambda start_ns, end_ns: [kernel('q"', at=start_ns), kernel(at=1), kernel("x", at=start_ns, device=-1)],
        faults={"errors": lambda: ['broke "here"']},
    )
    report = devprof.report_of(session.prof)
    assert report is devprof.last_report()
    in_trace = session.trace["devprof"]
    assert (in_trace["host"], in_trace["start_ns"], in_trace["end_ns"]) == ("torch", report.start_ns, report.end_ns)
    account = report.as_dict()["plugins"][session.ledger.plugin]
    assert in_trace["plugins"][session.ledger.plugin] == {**account, "errors": ["broke 'here'"]}
    assert account["errors"] == ['broke "here"']


def test_the_process_of_a_launch_is_this_one_and_its_row_the_calling_thread(deliver: Deliver) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(runtime.launch))
    (launch,) = toyland.slices(session.trace, "privateuse1_runtime")
    (op,) = [event for event in toyland.slices(session.trace, "cpu_op") if event["name"] == "toy::run"]
    assert (launch["pid"], launch["tid"]) == (op["pid"], op["tid"]) == (os.getpid(), ctypes.CDLL(None).gettid())


def test_the_bridge_says_which_names_torch_would_show_as_others() -> None:
    assert [bridge().demangles(name) for name in ("Pi", "k", "kernel", "", "Ov", "_Z3foov")] == [
        True,
        False,
        False,
        False,
        True,
        True,
    ]


def test_ten_thousand_records_with_texts_of_their_own_arrive(deliver: Deliver) -> None:
    n = 10_000

    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        yield ActivityBatch.from_columns([f"k{i}" for i in range(n)], **columns(start_ns, n, name=np.arange(n)))

    session = deliver(script, options={"activities": BOTH})
    assert len(set(toyland.names(session.trace, "kernel"))) == n
    assert_closes(session, n)
