"""Each rule finds the trace that breaks it, no other rule does, and a right trace breaks none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType, Flow, GenericTraceActivity, kLinkAsyncCpuGpu, kLinkFwdBwd
from devprof.rules import RULES, Finding, Severity, check
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder

OP, STEP, LAUNCH, KERNEL = (
    ActivityType.CPU_OP,
    ActivityType.USER_ANNOTATION,
    ActivityType.PRIVATEUSE1_RUNTIME,
    ActivityType.CONCURRENT_KERNEL,
)
THREAD, STREAM = 0, 1


@dataclass
class Event:
    kind: ActivityType
    name: str
    start_ns: int
    end_ns: int
    row: int = THREAD
    id: int = 0
    linked: int = 0
    flow: Flow | None = None
    parent: int = -1
    metadata: Mapping[str, float | str] = field(default_factory=dict)


def right() -> list[Event]:
    """Two steps; the first op launches two kernels, and has a backward op."""
    return [
        Event(STEP, "ProfilerStep#3", 1000, 1500, id=1),
        Event(OP, "mm", 1010, 1100, id=2, parent=0, flow=Flow(1, kLinkFwdBwd, True)),
        Event(LAUNCH, "launch", 1020, 1030, id=50, linked=2, parent=1, flow=Flow(9, kLinkAsyncCpuGpu, True)),
        Event(KERNEL, "k", 1040, 1060, STREAM, 50, 2, Flow(9, kLinkAsyncCpuGpu, False), 2),
        Event(KERNEL, "k", 1060, 1080, STREAM, 50, 2, parent=2),
        Event(STEP, "ProfilerStep#4", 1600, 1900, id=3),
        Event(OP, "mm backward", 1610, 1700, id=4, parent=5, flow=Flow(1, kLinkFwdBwd, False)),
    ]


def built(events: list[Event], rows: tuple[str, str] = ("thread 7", "stream 0"), **facts: object) -> Trace:
    builder = TraceBuilder()
    host = builder.place(Place(1, PlaceKind.HOST, "python"))
    toy = builder.place(Place(0, PlaceKind.DEVICE, "toy 0", backend="toy"))
    numbers = [builder.row(Row(host, 7, rows[0])), builder.row(Row(toy, 0, rows[1]))]
    for event in events:
        record = GenericTraceActivity(
            event.kind, event.name, event.start_ns, event.end_ns, id=event.id, linked=event.linked, flow=event.flow,
            metadata=event.metadata,
        )  # fmt: skip
        builder.add(ActivityBatch.from_activities([record]), numbers[event.row])
    trace = builder.build(window_start_ns=900, window_end_ns=2000, facts=facts)
    return trace.with_parent(np.array([event.parent for event in events], dtype=np.int32))


def changed(at: int, **values: object) -> Callable[[], Trace]:
    def make() -> Trace:
        events = right()
        events[at] = replace(events[at], **values)  # type: ignore[arg-type]
        return built(events)

    return make


def account(**values: object) -> Callable[[], Trace]:
    return lambda: built(right(), report={"plugins": {"toy": values}})


def wait(kind: str, start_ns: int, end_ns: int) -> Event:
    return Event(ActivityType.CUDA_SYNC, kind, start_ns, end_ns, STREAM, metadata={"cuda_sync_kind": kind})


def backward(start_ns: int, thread: int, parent: int = 5) -> Event:
    """A backward op of forward op number 7, launched by the forward thread."""
    metadata = {"Sequence number": 7, "Fwd thread id": thread}
    return Event(OP, "MmBackward0", start_ns, start_ns + 5, id=start_ns, parent=parent, metadata=metadata)


BROKEN = {
    "times.durations": changed(6, end_ns=1600),
    "times.window": changed(6, start_ns=10**12, end_ns=10**12, parent=-1),
    "times.cause": changed(3, start_ns=1015),
    "times.children": changed(6, start_ns=1590),
    "times.steps": changed(5, name="ProfilerStep#5"),
    "ids.ops": changed(6, id=2),
    "ids.launches": lambda: built([*right(), Event(LAUNCH, "query", 1085, 1090, id=50, linked=2, parent=1)]),
    "links.owners": changed(4, linked=77),
    "links.owned": changed(4, linked=0),
    "links.launched": changed(4, id=51),
    "links.calls": lambda: built([replace(event, id=51) if event.kind is KERNEL else event for event in right()]),
    "links.agree": changed(4, linked=4),
    "flows.paired": changed(3, flow=None),
    "flows.calls": lambda: built(
        [*right(), Event(LAUNCH, "query", 1085, 1090, id=51, linked=2, flow=Flow(7, kLinkAsyncCpuGpu, False), parent=1)]
    ),
    "flows.host": lambda: built(
        [
            *right(),
            Event(KERNEL, "j", 1090, 1091, STREAM, 50, 2, Flow(8, kLinkAsyncCpuGpu, True), 2),
            Event(KERNEL, "j", 1092, 1093, STREAM, 50, 2, Flow(8, kLinkAsyncCpuGpu, False), 2),
        ]
    ),
    "flows.backward": lambda: built(
        [
            replace(event, flow=Flow(1, kLinkFwdBwd, not event.flow.start))
            if event.kind is OP and event.flow
            else event
            for event in right()
        ]
    ),
    "rows.crossing": lambda: built(
        [
            *right(),
            Event(KERNEL, "a", 1100, 1120, STREAM, 50, 2, None, 2),
            Event(KERNEL, "b", 1110, 1130, STREAM, 50, 2, None, 2),
        ]
    ),
    "rows.serial": lambda: built(
        [
            *right(),
            Event(KERNEL, "a", 1100, 1120, STREAM, 50, 2, None, 2),
            Event(KERNEL, "b", 1110, 1115, STREAM, 50, 2, None, 2),
        ]
    ),
    "rows.named": lambda: built(right(), rows=("", "stream 0")),
    "text.names": changed(6, name="mm\x01"),
    "items.finite": changed(6, metadata={"ratio": float("nan")}),
    "times.syncs": lambda: built([*right(), wait("Stream Sync", 1070, 1079)]),
    "links.sequence": lambda: built([*right(), backward(1710, 3), backward(1720, 3)]),
    "file.whole": lambda: built(right(), file={"left_out": {"event that is no JSON": 2}, "notes": []}),
    "file.strict": lambda: built(right(), file={"not_strict": {"text behind the end": 1}}),
    "account.closes": account(produced=5, emitted=3, dropped={"before window": 1}, rejected={}),
    "account.whole": account(produced=5, emitted=3, dropped={"full": 1, "after window": 1}, rejected={}),
    "account.doubts": account(doubts=["2 of its calls carry the number of an earlier call"]),
    "account.plugins": account(set_aside={"hook": "session.stop", "at_ns": 1, "until": "the process ends"}),
}
ALSO = {"rows.crossing": {"rows.serial"}}
"""Work that crosses also overruns."""


def rules_of(findings: list[Finding]) -> set[str]:
    return {finding.rule for finding in findings}


def test_a_right_trace_breaks_no_rule() -> None:
    assert (
        check(built(right(), report={"plugins": {"toy": {"produced": 3, "emitted": 3, "dropped": {}, "rejected": {}}}}))
        == []
    )
    assert check(TraceBuilder().build()) == []


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_is_broken_by_its_trace_and_by_no_other(name: str) -> None:
    assert rules_of(check(BROKEN[name]())) == {name} | ALSO.get(name, set())


def test_every_rule_has_a_trace_that_breaks_it() -> None:
    assert {rule.name for rule in RULES} - BROKEN.keys() == {"ids.range"}


def test_negative_ids_are_found_beside_what_they_break() -> None:
    assert "ids.range" in rules_of(check(changed(2, id=-5)()))


@pytest.mark.parametrize(
    ("kind", "start_ns", "end_ns"),
    [
        ("Stream Sync", 1070, 1080),
        ("Context Sync", 1050, 1090),
        ("Stream Sync", 1035, 1039),
        ("Event Sync", 1070, 1071),
    ],
)
def test_a_wait_that_ends_with_its_work_or_says_not_for_what_it_waits_is_right(
    kind: str, start_ns: int, end_ns: int
) -> None:
    assert check(built([*right(), wait(kind, start_ns, end_ns)])) == []


def test_a_wait_for_a_device_is_over_when_all_its_streams_are() -> None:
    assert rules_of(check(built([*right(), wait("Context Sync", 1045, 1055)]))) == {"times.syncs"}


def test_a_backward_op_shares_its_number_with_the_op_that_it_calls_and_with_other_threads() -> None:
    nested = [*right(), backward(1710, 3), replace(backward(1711, 3, parent=7), end_ns=1712), backward(1720, 4)]
    assert check(built(nested)) == []


def test_a_driver_call_within_the_runtime_call_of_its_number_is_the_same_launch() -> None:
    assert check(built([*right(), Event(LAUNCH, "submit", 1022, 1028, id=50, linked=2, parent=2)])) == []


def test_a_call_within_the_time_of_one_on_another_thread_is_another_launch() -> None:
    calls = [replace(event, row=STREAM) for event in [Event(LAUNCH, "other thread", 1022, 1028, id=50, linked=2)]]
    trace = built([*right(), *calls])
    on_a_thread = replace(trace, rows=(trace.rows[0], trace.rows[1], Row(trace.rows[0].place, 8, "thread 8")))
    row = on_a_thread.row.copy()
    row[-1] = 2
    assert "ids.launches" in rules_of(check(replace(on_a_thread, row=row)))


def test_a_capture_without_calls_has_no_launches_to_miss() -> None:
    events = [event for event in right() if event.kind in (OP, KERNEL)]
    assert check(built([replace(event, flow=None, parent=-1) for event in events])) == []


def test_steps_of_two_threads_are_counted_apart() -> None:
    events = [
        Event(STEP, f"ProfilerStep#{n}", 1000 + 100 * n, 1090 + 100 * n, row, id=n + 1 + 5 * row)
        for n, row in ((1, 0), (2, 0), (1, 1))
    ]
    assert check(built(events)) == []


def test_what_a_reader_noted_of_a_file_is_found() -> None:
    findings = check(built(right(), file={"left_out": {"event that is no JSON": 2}, "notes": ["the file ends early"]}))
    assert [finding.says for finding in findings] == [
        "2 things in the file could not be read: event that is no JSON",
        "the file: the file ends early",
    ]


def test_a_finding_says_what_how_often_and_where() -> None:
    assert check(changed(4, linked=0)()) == [
        Finding(
            "links.owned",
            Severity.WARNING,
            1,
            "1 of 2 device records belong to no op, so no op's device time holds them; the first is 'k'",
            (4,),
        )
    ]
    assert str(check(changed(6, end_ns=1600)())[0]) == (
        "error times.durations: 1 events end before they start; the first, 'mm backward', by 10 ns"
    )


def test_a_kernel_may_start_before_its_launch_by_as_much_as_the_clocks_may_be_off() -> None:
    events = right()
    events[3] = replace(events[3], start_ns=1015)
    for uncertainty_ns, found in ((4, {"times.cause"}), (5, set())):
        facts = {"plugins": {"toy": {"clock": {"uncertainty_ns": uncertainty_ns}}}}
        assert rules_of(check(built(events, report=facts))) == found


def test_a_capture_without_host_ops_has_nothing_to_link_to() -> None:
    kernels = [Event(KERNEL, "k", 1040, 1060, STREAM, 50), Event(KERNEL, "k", 1060, 1080, STREAM, 51)]
    assert check(built(kernels)) == []


def test_rules_can_be_left_out_by_name() -> None:
    assert check(changed(4, linked=0)(), ignore={"links.owned"}) == []
    with pytest.raises(UsageError, match=r"there is no rule links\.ownde"):
        check(built(right()), ignore={"links.ownde"})


def test_every_rule_says_itself_in_a_sentence() -> None:
    assert [rule.name for rule in RULES if not rule.says.endswith(".")] == []
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_what_became_of_a_plugin_and_of_its_records_is_said_in_full() -> None:
    made = account(
        produced=7,
        emitted=2,
        dropped={"full": 1, "before window": 1},
        rejected={"no timestamp": 2, "delivered twice": 1},
        lost_unknown=["ring overrun"],
        failures=["plugin 'toy', session.stop: did not come back"],
        set_aside={"hook": "session.stop", "at_ns": 1, "until": "the process ends"},
    )
    assert [(one.rule, one.count, one.says) for one in check(made())] == [
        ("account.whole", 3, "3 records of toy were lost (full: 1, no timestamp: 2)"),
        ("account.whole", 1, "an unknown number of records of toy was lost: ring overrun"),
        ("account.plugins", 1, "toy was set aside in session.stop until the process ends; its rows end there"),
        ("account.plugins", 1, "plugin 'toy', session.stop: did not come back"),
    ]
