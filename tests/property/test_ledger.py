"""Whatever a plugin hands over, every record is in a batch or in the ledger, once."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from devprof.capture import Collector, PluginLedger, check_batch
from devprof.model import ActivityBatch, ActivityType, Flow, GenericTraceActivity

REQUESTED = frozenset({ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.PRIVATEUSE1_RUNTIME})
KERNEL = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 10, 20)

# what a field may hold instead of what it should
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.just({}),
    st.just((1, 2)),
    st.just({"k": 1}),
    st.just({"k": "1"}),
    st.just({1: 1}),
    st.just({"k": None}),
    st.sampled_from(ActivityType),
    st.builds(Flow, st.integers(0, 2**64), st.integers(0, 300), st.booleans()),
)
FIELDS = [field.name for field in dataclasses.fields(GenericTraceActivity)]
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=2)
ROWS = st.tuples(
    st.sampled_from([0, 3, 5, 24, 28, 29, 255]), st.integers(-1, 3), st.integers(-1, 3), st.sampled_from([-1, 0, 1])
)
HANDED = st.one_of(
    OBJECTS.map(lambda changes: ("object", changes)),
    st.lists(ROWS, max_size=4).map(lambda rows: ("batch", rows)),
    st.integers(0, 5).map(lambda n: ("dropped", n)),
)


def _hand_over(logger: Collector, kind: str, what: Any) -> int:
    """Hand something to the collector and return how many records it was."""
    if kind == "object":
        activity = dataclasses.replace(KERNEL)
        for field, value in what.items():
            setattr(activity, field, value)
        logger.handle_activity(activity)
        return 1
    if kind == "dropped":
        logger.handle_dropped(what, "buffer full")
        return int(what)
    types, starts, ends, devices = zip(*what, strict=True) if what else ((), (), (), ())
    batch = ActivityBatch.from_columns(
        ("k",), activity_type=types, name=0, start=list(starts), end=ends, device=devices
    )
    logger.handle_activities(batch)
    return len(what)


@given(st.lists(HANDED, max_size=15), st.integers(0, 12))
def test_produced_is_emitted_and_dropped_and_rejected(handed: list[tuple[str, Any]], limit: int) -> None:
    ledger = PluginLedger("demo")
    logger = Collector(ledger, clock="unix_ns", limit=limit)
    produced = sum(_hand_over(logger, kind, what) for kind, what in handed)
    logger.close()
    taken = sum(map(len, logger.batches))
    assert taken <= limit
    for batch in logger.batches:
        kept, rejected = check_batch(batch, REQUESTED)
        ledger.emitted += len(kept)
        ledger.rejected.update(rejected)
        assert {activity.activity_type for activity in kept.activities()} <= REQUESTED
        assert all(activity.duration_ns >= 0 for activity in kept.activities())
    assert ledger.produced == produced
    assert all(count > 0 for count in (*ledger.dropped.values(), *ledger.rejected.values()))
