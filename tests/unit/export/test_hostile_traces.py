"""Whatever a trace holds, the file is strict JSON and says what the trace says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from devprof.export import chrome_trace
from devprof.model import ActivityType
from devprof.store import ItemColumn, ItemKind, Place, PlaceKind, Row, Trace
from tests.unit.export.traces import crossings, end_ns, events_of, read, start_ns

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=()) | st.characters(categories=["Cs", "Cc"]), max_size=8)
TIMES = INT64 | st.integers(1790857026 * 10**9, 1790857027 * 10**9)
FACTS = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats() | TEXT | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
VALUES = {
    ItemKind.INT: (INT64, np.int64),
    ItemKind.FLOAT: (st.floats(), np.float64),
    ItemKind.BOOL: (st.integers(0, 1), np.uint8),
}
PLACES = st.lists(
    st.builds(Place, INT64 | st.integers(0, 3), st.sampled_from(PlaceKind), TEXT, TEXT, st.none() | INT64, TEXT),
    min_size=1,
    max_size=4,
)


@st.composite
def traces(draw: Any) -> Trace:
    """Draw a trace of anything that the columns can hold."""
    n = draw(st.integers(0, 12))
    strings = tuple(draw(st.lists(TEXT | st.sampled_from(["[1]", "{", "NaN"]), min_size=1, max_size=5)))
    places = tuple(draw(PLACES))
    row = st.builds(Row, st.integers(0, len(places) - 1), INT64 | st.integers(0, 3), TEXT, st.none() | INT64)
    rows = tuple(draw(st.lists(row, min_size=1, max_size=4)))

    def column(values: Any, dtype: Any, m: int = n) -> Any:
        return np.array(draw(st.lists(values, min_size=m, max_size=m)), dtype=dtype)

    def items(kinds: list[ItemKind]) -> dict[str, ItemColumn]:
        found = {}
        for key in draw(
            st.sets(TEXT | st.sampled_from(["device", "stream", "correlation", "External id"]), max_size=4)
        ):
            kind = draw(st.sampled_from(kinds))
            events = np.array(sorted(draw(st.sets(st.integers(0, n - 1)))) if n else [], dtype=np.int64)
            if kind is ItemKind.INT_LIST:
                width = draw(st.integers(0, 3))
                values = column(INT64, np.int64, len(events) * width).reshape(len(events), width)
            else:
                index = (st.integers(0, len(strings) - 1), np.int32)
                values = column(*VALUES.get(kind, index), len(events))
            found[key] = ItemColumn(kind, events, values)
        return found

    known = st.sampled_from([int(kind) for kind in ActivityType])
    small = st.integers(0, 3)
    return Trace(
        strings=strings,
        activity_type=column(known | st.integers(0, 255), np.uint8),
        name=column(st.integers(0, len(strings) - 1), np.int32),
        start_ns=column(TIMES, np.int64),
        end_ns=column(TIMES, np.int64),
        row=column(st.integers(0, len(rows) - 1), np.int32),
        id=column(INT64 | small, np.int64),
        linked=column(INT64 | small, np.int64),
        linked_user=column(INT64, np.int64),
        flow_id=column(INT64 | small, np.int64),
        flow_type=column(small, np.uint8),
        flow_start=column(st.integers(0, 2), np.uint8),
        parent=column(st.integers(-1, max(n - 1, -1)), np.int32),
        places=places,
        rows=rows,
        items=items(list(ItemKind)),
        counters=items([ItemKind.FLOAT]),
        window_start_ns=draw(TIMES | st.just(0)),
        window_end_ns=draw(TIMES | st.just(0)),
        facts=draw(st.dictionaries(TEXT | st.sampled_from(["metadata", "report", "trace_id"]), FACTS, max_size=4)),
    )


@settings(deadline=None, max_examples=300)
@given(traces())
def test_the_file_is_strict_and_holds_every_event_at_its_time(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        chrome_trace(trace, Path(folder) / "t.json")
        file = read(Path(folder) / "t.json")
    slices, instants, counters = (
        [event for event in events_of(file, phase) if "cat" in event] for phase in ("X", "i", "C")
    )
    assert len(slices) + len(instants) + len(counters) == len(trace)
    clean = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in trace.strings]
    ends = np.maximum(trace.start_ns, trace.end_ns).tolist()
    expected = sorted(zip((clean[i] for i in trace.name), trace.start_ns.tolist(), ends, strict=True))
    found = [(event["name"], start_ns(file, event), end_ns(file, event)) for event in slices]
    found += [(event["name"], start_ns(file, event), None) for event in (*instants, *counters)]
    assert sorted(one[:2] for one in found) == [one[:2] for one in expected]
    assert all(one in expected for one in found if one[2] is not None)
    assert crossings(file) == []
    _check_arrows(file)
    _check_tracks(trace, file)


def _check_arrows(file: Any) -> None:
    starts = [event["id"] for event in events_of(file, "s")]
    assert len(set(starts)) == len(starts)
    assert {event["id"] for event in events_of(file, "f")} <= set(starts)
    assert all(0 < number <= 2**53 for number in starts)


def _check_tracks(trace: Trace, file: Any) -> None:
    named = [(e["pid"], e["tid"]) for e in events_of(file, "M") if e["name"] == "thread_name"]
    assert len(set(named)) == len(named) >= len(trace.rows)
    pids = [e["pid"] for e in events_of(file, "M") if e["name"] == "process_name"]
    assert len(set(pids)) == len(pids) == len(trace.places)
    assert all(-(2**31) < number < 2**31 for number in (*pids, *(number for track in named for number in track)))
    events = [e for phase in "XiCsf" for e in events_of(file, phase) if "cat" in e]
    assert {(e["pid"], e["tid"]) for e in events} <= set(named)
