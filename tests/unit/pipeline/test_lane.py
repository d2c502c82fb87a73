"""The order of the stages, and what each leaves in the ledger."""

from __future__ import annotations

import numpy as np
import pytest

from devprof.capture import LaneResult, PluginLedger
from devprof.contract import ClockDomain, ClockSample
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.pipeline import process

KERNEL, LAUNCH = ActivityType.CONCURRENT_KERNEL, ActivityType.PRIVATEUSE1_RUNTIME
START_NS, END_NS = 1_000_000, 2_000_000


def delivery(*records: GenericTraceActivity, clock: str = "unix_ns", **facts: object) -> LaneResult:
    """A delivery of one batch."""
    batch = ActivityBatch.from_activities(records, clock=clock)
    return LaneResult("toy", PluginLedger("toy"), batches=[batch], **facts)  # type: ignore[arg-type]


def launch(start_ns: int, number: int, **fields: int) -> GenericTraceActivity:
    """A launch of 10 ns."""
    return GenericTraceActivity(LAUNCH, "launch", start_ns, start_ns + 10, id=number, **fields)  # type: ignore[arg-type]


def kernel(start_ns: int, number: int, **fields: int) -> GenericTraceActivity:
    """A kernel of 100 ns."""
    return GenericTraceActivity(KERNEL, "work", start_ns, start_ns + 100, id=number, **fields)  # type: ignore[arg-type]


def test_a_launch_and_its_kernel_come_out_linked_with_one_arrow() -> None:
    """The normal case, whole."""
    lane = process(
        delivery(launch(START_NS + 5, 7, linked=3), kernel(START_NS + 20, 7, linked=3)),
        start_ns=START_NS,
        end_ns=END_NS,
        known_ops=lambda ids: ids == 3,
    )
    (columns,) = lane.columns
    assert columns.linked.tolist() == [3, 3]
    assert columns.id.tolist() == [2**30, 2**30]
    assert columns.flow_id.tolist() == [2**30, 2**30]
    assert columns.flow_start.tolist() == [1, 0]
    assert lane.next_launch == 2**30 + 1
    assert lane.ledger.as_dict() | {"clock": {}} == PluginLedger("toy", emitted=2, device_work=1, linked=1).as_dict()


def test_what_is_outside_the_window_is_counted_and_gone() -> None:
    """Dropped records have reasons, and the account closes."""
    result = delivery(kernel(START_NS - 500, 0), kernel(START_NS + 5, 0), kernel(END_NS + 5, 0))
    lane = process(result, start_ns=START_NS, end_ns=END_NS)
    assert [len(batch) for batch in lane.batches] == [1]
    assert dict(lane.ledger.dropped) == {"before window": 1, "after window": 1}
    assert lane.ledger.produced == 3


def test_ticks_are_converted_before_the_window_is_applied() -> None:
    """A device clock that began at 0 and runs at 1 MHz: its ticks are no Unix times."""
    domain = ClockDomain("toy ticks", ticks_per_second=1e6)
    samples = [ClockSample(START_NS, 100, START_NS), ClockSample(END_NS, 1100, END_NS)]
    records = GenericTraceActivity(KERNEL, "work", 600, 700)
    result = delivery(records, clock="toy ticks", clock_domain=domain, clock_samples=samples)
    lane = process(result, start_ns=START_NS, end_ns=END_NS)
    (batch,) = lane.batches
    assert (batch.start.tolist(), batch.end.tolist()) == ([1_500_000], [1_600_000])
    assert batch.clock == "unix_ns"
    assert lane.ledger.clock["clock"] == "toy ticks"


def test_host_times_beside_a_device_clock_stay_as_they_are() -> None:
    """Runtime calls are often stamped by the host, their kernels by the device."""
    domain = ClockDomain("toy ticks")
    result = delivery(
        launch(START_NS + 5, 1),
        clock_domain=domain,
        clock_samples=[ClockSample(START_NS, 0, START_NS), ClockSample(END_NS, 1_000_000, END_NS)],
    )
    lane = process(result, start_ns=START_NS, end_ns=END_NS)
    assert lane.batches[0].start.tolist() == [START_NS + 5]


def test_a_virtual_clock_is_anchored_at_the_start_and_exempt_from_the_window() -> None:
    """Its first sample is the session's start, and what it records may be longer than the session."""
    domain = ClockDomain("virtual", virtual=True)
    records = [
        GenericTraceActivity(KERNEL, "work", 50, 60),
        GenericTraceActivity(KERNEL, "work", 50 + 10**9, 60 + 10**9),
    ]
    samples = [ClockSample(START_NS - 77, 50, START_NS - 70)]
    result = delivery(*records, clock="virtual", clock_domain=domain, clock_samples=samples)
    lane = process(result, start_ns=START_NS, end_ns=END_NS)
    assert lane.batches[0].start.tolist() == [START_NS, START_NS + 10**9]
    assert lane.ledger.emitted == 2


def test_ticks_without_a_sample_are_rejected_with_the_reason() -> None:
    """No time is invented for them; records on the host's clock stay."""
    domain = ClockDomain("toy ticks")
    ticking = ActivityBatch.from_activities([kernel(5, 0), kernel(6, 0)], clock="toy ticks")
    result = delivery(launch(START_NS + 5, 1), clock_domain=domain)
    result.batches.append(ticking)
    lane = process(result, start_ns=START_NS, end_ns=END_NS)
    assert dict(lane.ledger.rejected) == {"no clock sample to convert its ticks": 2}
    assert "no usable sample" in lane.ledger.errors[0]
    assert lane.ledger.emitted == 1


@pytest.mark.parametrize(("first_end", "note"), [(START_NS + 105, 0), (START_NS + 300, 1)])
def test_work_that_crosses_on_a_stream_is_noted(first_end: int, note: int) -> None:
    """A stream works in order; where records say otherwise, a viewer would drop one of them."""
    first = GenericTraceActivity(KERNEL, "first", START_NS + 5, first_end)
    second = GenericTraceActivity(KERNEL, "second", START_NS + 105, START_NS + 405)
    lane = process(delivery(first, second), start_ns=START_NS, end_ns=END_NS)
    assert lane.ledger.notes["work that crosses another on its row"] == note


def test_a_second_plugin_gets_other_devices_and_other_launch_numbers() -> None:
    """Two "device 0" do not share a row, two "launch 1" no arrow."""
    options = {"start_ns": START_NS, "end_ns": END_NS}
    records = launch(START_NS + 5, 1), kernel(START_NS + 20, 1)
    first = process(delivery(*records), **options)  # type: ignore[arg-type]
    second = process(delivery(*records), launch_base=first.next_launch, device_offset=100, **options)  # type: ignore[arg-type]
    assert second.columns[0].device.tolist() == [0, 100]
    assert not set(first.columns[0].id.tolist()) & set(second.columns[0].id.tolist())


def test_nothing_delivered_is_an_empty_account() -> None:
    """A plugin that recorded nothing is no mistake."""
    lane = process(LaneResult("toy", PluginLedger("toy")), start_ns=START_NS, end_ns=END_NS)
    assert (lane.batches, len(lane.spans), lane.ledger.produced) == ([], 0, 0)
    assert np.iinfo(np.int32).max > lane.next_launch == 2**30


def test_a_record_that_was_delivered_twice_is_in_the_trace_once_and_counted_as_rejected() -> None:
    """Else its op's device time would be doubled. The launch of the first copy stays its launch."""
    records = [launch(START_NS + 5, 7, linked=3), kernel(START_NS + 20, 7, linked=3)]
    once = process(delivery(*records), start_ns=START_NS, end_ns=END_NS)
    twice = process(delivery(*records, *records), start_ns=START_NS, end_ns=END_NS)
    assert twice.ledger.as_dict() == once.ledger.as_dict() | {"produced": 4, "rejected": {"delivered twice": 2}}
    assert twice.batches[0].start.tolist() == once.batches[0].start.tolist()
    assert twice.columns[0].flow_id.tolist() == once.columns[0].flow_id.tolist()


@pytest.mark.parametrize(
    ("start", "doubts"),
    [
        (START_NS // 1000, []),  # a short while before the window: work left over
        (START_NS + 30 * 8766 * 3600 * 10**9, ["30 years"]),
        (START_NS + 2 * 3600 * 10**9, ["2.0 hours"]),
    ],
)
def test_device_work_that_is_nowhere_near_the_window_makes_the_times_doubtful(start: int, doubts: list[str]) -> None:
    """Microseconds, ticks or another clock: every record is outside, and without a word the trace would just be empty."""
    lane = process(delivery(kernel(start, 0), kernel(start + 500, 0)), start_ns=START_NS, end_ns=END_NS)
    assert lane.ledger.emitted == 0
    assert [doubt for doubt in lane.ledger.doubts if "none of its 2 device records is inside the window" in doubt] == (
        lane.ledger.doubts
    )
    assert [words for words in doubts if words in lane.ledger.doubts[0]] == doubts
    assert len(lane.ledger.doubts) == len(doubts)
    assert lane.ledger.clean == (not doubts)
