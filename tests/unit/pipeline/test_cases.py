"""Every shared case of linking, as a trace of devprof's own host."""

from __future__ import annotations

import pytest

from devprof.capture import LaneResult, PluginLedger
from devprof.clock import HostClock
from devprof.host import HOST_TICKS, HostRecording
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity, Role
from devprof.pipeline import assemble, known_ops, process, user_parents
from devprof.store import Trace
from tests.cases.linking import CASES, OWN, Case, Gone, Kept

ZERO_NS = 1_790_000_000_000_000_000


def _host(case: Case) -> HostRecording:
    """The ops and user ranges that the case speaks of; ids of ranges are one space here."""
    users = {one.linked_user for one in case.records} | set(case.user_parents) | set(case.user_parents.values())
    ops = {one.linked for one in case.records} if case.known_ops is None else case.known_ops
    ranges = [
        GenericTraceActivity(
            ActivityType.USER_ANNOTATION if number in users else ActivityType.CPU_OP,
            f"range {number}",
            0,
            1,
            id=number,
            linked_user=case.user_parents.get(number, 0),
        )
        for number in sorted((users | ops) - {0})
    ]
    nothing = ActivityBatch.from_activities([], clock=HOST_TICKS)
    return HostRecording(ActivityBatch.from_activities(ranges, clock=HOST_TICKS), nothing, nothing)


def _trace(case: Case, size: int = 1_000) -> tuple[Trace, int]:
    """The case's trace, and the index of the first of the case's records, behind the host's events and the spans of ranges."""
    host = _host(case)
    records = case.records_at(ZERO_NS)
    batches = [ActivityBatch.from_activities(records[i : i + size]) for i in range(0, len(records), size)]
    start_ns, end_ns = case.window_at(ZERO_NS)
    lane = process(
        LaneResult("toy", PluginLedger("toy"), batches=batches),
        start_ns=start_ns,
        end_ns=end_ns,
        known_ops=known_ops(host),
        user_parents=user_parents(host),
        widened_by_ns=0,
    )
    clock = HostClock.started(lambda: 0, lambda: ZERO_NS)
    trace = assemble(host, [lane], clock=clock, window_start_ns=start_ns, window_end_ns=end_ns)
    return trace, len(host.ranges) + len(trace.of_type(ActivityType.GPU_USER_ANNOTATION))


def _is_launch(one: GenericTraceActivity) -> bool:
    return one.activity_type.role is Role.LAUNCH


def _parent(case: Case, position: int, want: Kept) -> str:
    """The launch that shares the number of device work, else the op."""
    shared = want.number
    if shared != OWN and _is_launch(case.records[shared]) and not _is_launch(case.records[position]):
        return f"record {shared}"
    return f"range {want.op}" if want.op else "none"


# a clock's uncertainty comes with a clock of its own, which these deliveries do not have
PLAIN = [case for case in CASES if not case.uncertainty_ns]


@pytest.mark.parametrize("size", [1_000, 2], ids=["one batch", "batches of two"])
@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_records_hang_on_their_launch_or_their_op_and_arrows_start_where_the_case_says(case: Case, size: int) -> None:
    trace, first = _trace(case, size)
    kept = [i for i, want in enumerate(case.expected) if isinstance(want, Kept)]
    names = {first + i: f"record {position}" for i, position in enumerate(kept)}
    names |= {event: trace.name_of(event) for event in range(first)} | {-1: "none"}
    start_of = {
        int(trace.flow_id[event]): names[event] for event in names if event >= first and trace.flow_start[event]
    }
    for event in range(first, first + len(kept)):
        position = kept[event - first]
        want = case.expected[position]
        assert isinstance(want, Kept)
        arrow = None if want.arrow is None else f"record {position if want.arrow == OWN else want.arrow}"
        assert (
            names[int(trace.parent[event])],
            start_of.get(int(trace.flow_id[event])),
            bool(trace.item("before its launch", event)),
        ) == (_parent(case, position, want), arrow, want.skewed)
    assert len(trace) == first + len(kept)
    assert sum(isinstance(want, Gone) for want in case.expected) == len(case.records) - len(kept)


@pytest.mark.parametrize("case", [case for case in PLAIN if case.spans is not None], ids=str)
def test_user_ranges_stand_on_devices_under_their_names_at_the_times_that_were_measured(case: Case) -> None:
    """The case has them as Kineto writes them: 1 ns wider on both sides, where there is room for it."""
    trace, _ = _trace(case)
    devices = {event: trace.places[trace.rows[trace.row[event]].place].id for event in range(len(trace))}
    found = sorted(
        (trace.name_of(event), devices[event], int(trace.start_ns[event]) - ZERO_NS, int(trace.end_ns[event]) - ZERO_NS)
        for event in trace.of_type(ActivityType.GPU_USER_ANNOTATION).tolist()
    )
    wanted = sorted((f"range {span.user}", span.device, span.start, span.end) for span in case.spans or ())
    assert [one[:2] for one in found] == [one[:2] for one in wanted]
    edges = {one.start_ns for one in case.records} | {one.end_ns for one in case.records}
    assert edges >= {edge for one in found for edge in one[2:]}
    for (*_, start, end), (*_, written_start, written_end) in zip(found, wanted, strict=True):
        assert start - written_start in (0, 1)
        assert written_end - end in (0, 1)
