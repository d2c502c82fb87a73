"""Traces of several ranks become one in which nothing collides and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof import rules
from devprof.errors import TraceFileError, UsageError
from devprof.model import ActivityBatch, GenericTraceActivity
from devprof.pipeline.ranks import merge
from devprof.store import ItemKind, Place, PlaceKind, RawJson, Row, Trace, TraceBuilder
from tests.unit.pipeline.rank_traces import BEGIN_NS, KERNEL, LAUNCH, OP, SPAN, Collective, rank_trace

HOUR_NS = 3600 * 10**9


def entries(trace: Trace) -> list[dict[str, Any]]:
    found = trace.facts["ranks"]
    assert isinstance(found, list)
    return found


def events_of(trace: Trace, at: int) -> np.ndarray[Any, Any]:
    """Return the indices of the events of the rank that was given at that position."""
    return np.flatnonzero(np.isin(trace.place, entries(trace)[at]["places"]))


def links(trace: Trace, events: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    """Return what each event is linked to, in words that no numbering changes."""
    place = {int(event): i for i, event in enumerate(events)}
    ops = {int(trace.id[e]): place[int(e)] for e in events if trace.activity_type[e] in (OP, SPAN) and trace.id[e]}
    launches = {int(trace.id[e]): place[int(e)] for e in events if trace.activity_type[e] == LAUNCH}
    arrows = {int(trace.flow_id[e]): place[int(e)] for e in events if trace.flow_start[e]}
    return [
        {
            "name": trace.name_of(e),
            "parent": place.get(int(trace.parent[e])),
            "owner": ops.get(int(trace.linked[e])),
            "launch": launches.get(int(trace.id[e])) if trace.activity_type[e] == KERNEL else None,
            "arrow": arrows.get(int(trace.flow_id[e])),
            "duration": int(trace.duration_ns[e]),
        }
        for e in events.tolist()
    ]


def test_two_files_whose_clocks_count_from_bases_an_hour_apart_are_lined_up_and_the_offset_is_written(
    tmp_path: Path,
) -> None:
    paths = []
    for rank in (0, 1):
        path = tmp_path / f"{rank}.json"
        event = {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 7, "tid": 7, "ts": 5.0, "dur": 2.0}
        facts = {"baseTimeNanoseconds": BEGIN_NS + rank * HOUR_NS, "distributedInfo": {"rank": rank}}
        path.write_text(json.dumps({**facts, "traceEvents": [event]}))
        paths.append(path)
    merged = merge(paths)
    assert merged.start_ns.tolist() == [BEGIN_NS + 5000, BEGIN_NS + HOUR_NS + 5000]
    assert [(one["rank"], one["begins_after_ns"], one["shift_ns"]) for one in entries(merged)] == [
        (0, 0, 0),
        (1, HOUR_NS, 0),
    ]
    assert [one["file"] for one in entries(merged)] == [str(path) for path in paths]


def test_an_hour_between_two_ranks_is_pointed_out() -> None:
    merged = merge([rank_trace(rank=0), rank_trace(rank=1, begin_ns=BEGIN_NS + HOUR_NS)])
    (note,) = merged.facts["alignment"]["notes"]  # type: ignore[index]
    assert "rank 1 was recorded 3600.000 s apart from rank 0" in note


def test_no_two_places_share_a_number_and_the_name_says_rank_and_real_number() -> None:
    merged = merge([rank_trace(rank=3), rank_trace(rank=5), rank_trace(rank=4, pid=8, device=1)])
    found = [(place.id, place.kind, place.name, place.sort_index) for place in merged.places]
    assert found == [
        (7, PlaceKind.HOST, "rank 3: python", 0),
        (0, PlaceKind.DEVICE, "rank 3: GPU 0", 1),
        (9, PlaceKind.HOST, "rank 5: python (pid 7)", 2),
        (2, PlaceKind.DEVICE, "rank 5: GPU 0 (device 0)", 3),
        (8, PlaceKind.HOST, "rank 4: python", 4),
        (1, PlaceKind.DEVICE, "rank 4: GPU 1", 5),
    ]
    assert len({place.title for place in merged.places}) == len(merged.places)


def test_the_properties_of_a_device_follow_its_number() -> None:
    merged = merge([rank_trace(), rank_trace()])
    assert [place.properties for place in merged.places if place.kind is PlaceKind.DEVICE] == [
        {"id": 0},
        {"id": 1, "id in its process": 0},
    ]


@pytest.mark.parametrize("said", [(None, 1), (1, 1), (None, None)])
def test_where_ranks_are_not_known_they_are_numbered_as_given_and_that_is_noted(said: tuple[int | None, ...]) -> None:
    merged = merge([rank_trace(rank=rank) for rank in said])
    assert [one["rank"] for one in entries(merged)] == [0, 1]
    assert "numbered as they were given" in str(merged.facts["alignment"])


def test_facts_on_which_all_agree_are_facts_of_the_whole_and_each_keeps_its_own() -> None:
    one = rank_trace(rank=0, record_shapes=True, trace_id="A")
    other = rank_trace(rank=1, record_shapes=True, trace_id="B")
    merged = merge([one, other])
    whole = {key: value for key, value in merged.facts.items() if key not in ("ranks", "alignment")}
    assert whole == {"host": "file", "record_shapes": True, "metadata": {"distributedInfo": {"world_size": 2}}}
    assert [entry["facts"] for entry in entries(merged)] == [one.facts, other.facts]


def test_windows_are_united() -> None:
    merged = merge([rank_trace(begin_ns=BEGIN_NS + 500), rank_trace(), TraceBuilder().build()])
    assert (merged.window_start_ns, merged.window_end_ns) == (BEGIN_NS, BEGIN_NS + 1500)


def test_a_right_trace_of_each_rank_makes_a_right_trace_of_all() -> None:
    parts = [rank_trace(rank=rank, n_ops=3) for rank in range(3)]
    assert [str(one) for one in rules.check(parts[0])] == []
    assert [str(one) for one in rules.check(merge(parts))] == []


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=4), st.integers(0, 2**62))
def test_every_link_within_a_rank_stays_and_no_number_is_shared(ranks: list[tuple[int, int]], far: int) -> None:
    parts = []
    for n_ops, spread in ranks:
        part = rank_trace(n_ops=n_ops)
        if spread == 1 and len(part):  # ids far apart, as of backends that make them from addresses
            jump = np.where(part.id > 1, far, 0)
            columns = {key: np.where(getattr(part, key) > 1, getattr(part, key) + far, getattr(part, key))
                       for key in ("linked", "flow_id")}  # fmt: skip
            part = Trace(**{**fields_of(part), "id": part.id + jump, **columns})
        parts.append(part)
    merged = merge(parts)
    mine = [events_of(merged, at) for at in range(len(parts))]
    for part, events in zip(parts, mine, strict=True):
        assert links(merged, events) == links(part, np.arange(len(part)))
    is_op = np.isin(merged.activity_type, (OP, SPAN))
    for numbers in (np.where(is_op, merged.id, 0), np.where(is_op, 0, merged.id), merged.flow_id):
        sets = [set(numbers[events].tolist()) - {0} for events in mine]
        assert sum(map(len, sets)) == len(set().union(*sets))
    assert all((getattr(merged, key) >= 0).all() for key in ("id", "linked", "flow_id"))


def fields_of(trace: Trace) -> dict[str, Any]:
    return {key: getattr(trace, key) for key in Trace.__dataclass_fields__}


def test_the_first_rank_keeps_its_numbers_and_sequence_numbers_are_apart() -> None:
    merged = merge([rank_trace(), rank_trace()])
    assert merged.id[events_of(merged, 0)].tolist() == rank_trace().id.tolist()
    sequence = merged.items["Sequence number"]
    assert sequence.values.tolist() == [1, 2, 3, 4]


def test_items_stay_with_their_events() -> None:
    parts = [rank_trace(metadata={"grid": (1, 2), "text": "a"}), rank_trace(metadata={"text": "b", "share": 0.5})]
    merged = merge(parts)
    for at, part in enumerate(parts):
        for event, own in zip(events_of(merged, at).tolist(), range(len(part)), strict=True):
            expected = {key: value for key, value in part.items_of(own).items() if key != "Sequence number"}
            found = {key: value for key, value in merged.items_of(event).items() if key != "Sequence number"}
            assert found == expected


def test_a_key_of_two_types_becomes_json_and_whole_numbers_beside_fractions_become_fractions() -> None:
    first = rank_trace(n_ops=1, metadata={"what": 3, "number": 2, "list": (1, 2)})
    second = rank_trace(n_ops=1, metadata={"what": "x", "number": 0.5, "list": (1, 2, 3)})
    merged = merge([first, second])
    assert [merged.items[key].kind for key in ("what", "number", "list")] == [
        ItemKind.JSON,
        ItemKind.FLOAT,
        ItemKind.JSON,
    ]
    ops = merged.named("mm").tolist()
    found = [{key: merged.item(key, event) for key in ("what", "number", "list")} for event in ops]
    assert found == [
        {"what": RawJson("3"), "number": 2.0, "list": RawJson("[1, 2]")},
        {"what": RawJson('"x"'), "number": 0.5, "list": RawJson("[1, 2, 3]")},
    ]


def behind(ns: int, ends: list[int], late: list[int], **facts: Any) -> list[Collective]:
    return [Collective("allreduce", end + ns + jitter, facts) for end, jitter in zip(ends, late, strict=True)]


def test_by_collectives_a_rank_is_moved_by_the_median_of_what_they_say() -> None:
    ends = [BEGIN_NS + 1000 * i for i in (1, 2, 4)]
    one = rank_trace(rank=0, collectives=behind(0, ends, [0, 0, 0]))
    other = rank_trace(rank=1, begin_ns=BEGIN_NS + HOUR_NS, collectives=behind(HOUR_NS, ends, [7, 3, 90]))
    merged = merge([one, other], align="collectives")
    assert entries(merged)[1]["shift_ns"] == -HOUR_NS - 7
    told = {key: entries(merged)[1][key] for key in ("against_rank", "matched", "spread_ns", "begins_after_ns")}
    assert told == {"against_rank": 0, "matched": 3, "spread_ns": 4, "begins_after_ns": HOUR_NS}
    assert merged.facts["alignment"] == {"by": "collectives", "reference_rank": 0, "notes": []}
    mine = events_of(merged, 1)
    assert merged.start_ns[mine].tolist() == (other.start_ns - HOUR_NS - 7).tolist()
    assert (merged.window_start_ns, merged.window_end_ns) == (BEGIN_NS - 7, BEGIN_NS + 1000)


def test_times_of_no_wall_clock_are_lined_up_by_collectives_only() -> None:
    ends = [5000, 6000]
    parts = [rank_trace(begin_ns=1000, collectives=behind(0, ends, [0, 0])) for _ in range(2)]
    with pytest.raises(UsageError, match="rank 0 are not those of a wall clock"):
        merge(parts)
    assert entries(merge(parts, align="collectives"))[1]["shift_ns"] == 0
    assert entries(merge(parts, align="none"))[1]["shift_ns"] == 0


@pytest.mark.parametrize("on", ["device", "host"])
def test_operations_are_matched_by_what_they_are_where_one_capture_began_later(on: str) -> None:
    names = ["allreduce", "broadcast", "allgather", "allreduce", "barrier"]
    calls = [Collective(name, BEGIN_NS + 1000 * i, {"In msg nelems": i}) for i, name in enumerate(names)]
    late = [Collective(one.name, one.end_ns + 55, one.facts) for one in calls[2:]]
    parts = [rank_trace(collectives=calls, collectives_on=on), rank_trace(collectives=late, collectives_on=on)]
    entry = entries(merge(parts, align="collectives"))[1]
    assert (entry["shift_ns"], entry["matched"]) == (-55, 3)


def test_operations_are_matched_by_their_numbers_where_they_have_them() -> None:
    first = [Collective("allreduce", BEGIN_NS + 1000 * i, {"Seq": i}) for i in range(4)]
    second = [Collective("allreduce", BEGIN_NS + 1000 * i + 9, {"Seq": i}) for i in range(2, 6)]
    entry = entries(merge([rank_trace(collectives=one) for one in (first, second)], align="collectives"))[1]
    assert (entry["shift_ns"], entry["matched"]) == (-9, 2)


def test_without_items_torchs_ops_are_known_by_their_names() -> None:
    def calls(late_ns: int) -> Trace:
        builder, names = TraceBuilder(), ["c10d::send", "c10d::allreduce_", "c10d::barrier"]
        row = builder.row(Row(builder.place(Place(7, PlaceKind.HOST)), 7))
        ops = [GenericTraceActivity(OP, name, BEGIN_NS, BEGIN_NS + 10 * i + late_ns) for i, name in enumerate(names)]
        builder.add(ActivityBatch.from_activities(ops), row)
        return builder.build()

    entry = entries(merge([calls(0), calls(30)], align="collectives"))[1]
    assert (entry["shift_ns"], entry["matched"]) == (-30, 2)


def test_ranks_that_never_met_are_lined_up_through_one_that_met_both() -> None:
    def calls(group: str, late_ns: int) -> Collective:
        return Collective("allreduce", BEGIN_NS + late_ns, {"Process Group Name": group})

    parts = [
        rank_trace(collectives=[calls("a", 0)]),
        rank_trace(collectives=[calls("b", 700)]),
        rank_trace(collectives=[calls("a", 100), calls("b", 200)]),
    ]
    found = [(one["shift_ns"], one.get("against_rank")) for one in entries(merge(parts, align="collectives"))]
    assert found == [(0, None), (-600, 2), (-100, 0)]


@pytest.mark.parametrize("name", ["send", "recv"])
def test_messages_between_two_ranks_say_nothing_about_the_others(name: str) -> None:
    parts = [rank_trace(collectives=[Collective(name, BEGIN_NS)]) for _ in range(2)]
    with pytest.raises(UsageError, match="rank 1 has no collective operation in common with rank 0"):
        merge(parts, align="collectives")


def test_what_cannot_be_merged_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to merge"):
        merge([])
    with pytest.raises(UsageError, match="merged already"):
        merge([merge([rank_trace(), rank_trace()])])
    with pytest.raises(UsageError, match="align is 'stars'; expected one of 'clock', 'collectives', 'none'"):
        merge([rank_trace()], align="stars")  # type: ignore[arg-type]
    with pytest.raises(TraceFileError, match="absent"):
        merge([tmp_path / "absent.json"])
