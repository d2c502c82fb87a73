"""One record: what a plugin fills in, and what it may leave out."""

from __future__ import annotations

import pytest

from devprof.model import ActivityType, Flow, GenericTraceActivity, kLinkAsyncCpuGpu, kLinkFwdBwd


def test_only_kind_name_and_times_must_be_given() -> None:
    activity = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 3, 8)
    assert activity == GenericTraceActivity(
        activity_type=ActivityType.CONCURRENT_KERNEL,
        activity_name="k",
        start_ns=3,
        end_ns=8,
        id=0,
        device=0,
        resource=0,
        thread_id=0,
        linked=0,
        linked_user=0,
        flow=None,
        metadata={},
        counter_values={},
    )


@pytest.mark.parametrize(("start_ns", "end_ns", "duration_ns"), [(3, 8, 5), (3, 3, 0), (8, 3, -5), (0, 2**64, 2**64)])
def test_the_duration_is_end_minus_start_even_where_the_record_is_wrong(
    start_ns: int, end_ns: int, duration_ns: int
) -> None:
    assert GenericTraceActivity(ActivityType.GPU_MEMSET, "m", start_ns, end_ns).duration_ns == duration_ns


def test_two_records_do_not_share_their_metadata() -> None:
    one, other = (GenericTraceActivity(ActivityType.GPU_MEMSET, "m", 1, 2) for _ in range(2))
    assert one.metadata is not other.metadata
    assert one.counter_values is not other.counter_values


def test_a_record_has_no_room_for_a_misspelt_field() -> None:
    activity = GenericTraceActivity(ActivityType.GPU_MEMSET, "m", 1, 2)
    with pytest.raises(AttributeError):
        activity.end = 3  # type: ignore[attr-defined]


def test_flow_types_have_kinetos_numbers() -> None:
    assert (kLinkFwdBwd, kLinkAsyncCpuGpu) == (1, 2)
    assert Flow(7, kLinkAsyncCpuGpu, start=True) == (7, 2, True)
