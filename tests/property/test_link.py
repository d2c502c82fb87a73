"""Linking, for any records: against slow and obvious versions of itself, and for what must always hold."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from devprof.link import annotation_spans, apply_window, join_launches, link, overlapping_rows
from devprof.link.overlaps import crossings
from devprof.link.span_rows import lanes_of
from devprof.model import ActivityBatch, ActivityType, Flow, GenericTraceActivity, Role

T = ActivityType
Records = list[GenericTraceActivity]

times = st.integers(0, 60)
lengths = st.integers(0, 20)
flows = st.none() | st.builds(Flow, st.integers(1, 3), st.integers(1, 2), st.booleans())
NO_FLOW: st.SearchStrategy[Flow | None] = st.none()
ids = st.integers(0, 5) | st.sampled_from([2**40, -7])


@st.composite
def records(draw: st.DrawFn, *, flow: st.SearchStrategy[Flow | None] = NO_FLOW, max_size: int = 30) -> Records:
    kinds = st.sampled_from([T.PRIVATEUSE1_RUNTIME, T.CONCURRENT_KERNEL, T.GPU_MEMCPY, T.CUDA_SYNC, T.OVERHEAD])
    one = st.builds(
        lambda kind, start, length, **rest: GenericTraceActivity(kind, "x", start, start + length, **rest),
        kinds,
        times,
        lengths,
        id=ids,
        device=st.integers(0, 1),
        resource=st.sampled_from([1, 2, 2**50]),
        thread_id=st.integers(0, 2),
        linked=st.integers(0, 3),
        linked_user=st.integers(0, 4),
        flow=flow,
    )
    return draw(st.lists(one, max_size=max_size))


def _batches(rows: Records, size: int = 1000) -> list[ActivityBatch]:
    return [ActivityBatch.from_activities(rows[i : i + size]) for i in range(0, len(rows), size)]


def _is_launch(one: GenericTraceActivity) -> bool:
    return one.activity_type.role is Role.LAUNCH


def _is_on_device(one: GenericTraceActivity) -> bool:
    return one.activity_type.is_device_work or one.activity_type.role is Role.SYNC


def _slow_launch(rows: Records, row: int) -> int:
    """The launch of a record, by the words of the rule."""
    one = rows[row]
    if not _is_on_device(one) or one.id == 0:
        return -1
    caused = min(
        (r for r, other in enumerate(rows) if _is_on_device(other) and other.id == one.id),
        key=lambda r: rows[r].start_ns,
    )
    first = rows[caused]

    def rank(r: int) -> tuple[object, ...]:
        host = rows[r]
        same_op = host.linked != 0 and host.linked == first.linked
        same_thread = host.thread_id != 0 and host.thread_id == first.thread_id
        return host.start_ns > first.start_ns, not same_op, not same_thread, host.start_ns, r

    return min((r for r, host in enumerate(rows) if _is_launch(host) and host.id == one.id), key=rank, default=-1)


@given(records(), st.integers(1, 7))
def test_launches_are_those_of_the_rule_however_the_records_are_batched(rows: Records, size: int) -> None:
    join = join_launches(_batches(rows, size))
    launches = [_slow_launch(rows, row) for row in range(len(rows))]
    assert join.launch.tolist() == launches
    with_work = {launch for launch, one in zip(launches, rows, strict=True) if one.activity_type.is_device_work} - {-1}
    assert np.flatnonzero(join.has_work).tolist() == sorted(with_work)


@given(records(), times, times)
def test_the_window_is_that_of_the_rule(rows: Records, one: int, other: int) -> None:
    start, end = sorted((one, other))
    batches = _batches(rows, 6)
    join = join_launches(batches)
    window = apply_window(batches, join, start, end)
    wanted = []
    for row, record in enumerate(rows):
        launch = _slow_launch(rows, row)
        decides = record if launch < 0 else rows[launch]
        wanted.append(record.start_ns >= start and start <= decides.start_ns <= end)
    assert [kept for mask in window.masks for kept in mask.tolist()] == wanted
    assert window.n_kept + sum(window.dropped.values()) == len(rows)


@given(records(), times)
def test_the_join_after_the_window_is_the_join_of_what_stays(rows: Records, start: int) -> None:
    batches = _batches(rows, 6)
    join = join_launches(batches)
    kept, after = apply_window(batches, join, start, start + 30).apply(batches, join)
    row_of = np.flatnonzero(
        np.concatenate([np.zeros(0, dtype=bool), *apply_window(batches, join, start, start + 30).masks])
    )
    assert [-1 if launch < 0 else int(row_of[launch]) for launch in after.launch] == join.launch[row_of].tolist()
    assert after.bounds == tuple(np.cumsum([0, *map(len, kept)]).tolist())
    work = [after.launch[r] for r in range(len(after)) if rows[row_of[r]].activity_type.is_device_work]
    assert np.flatnonzero(after.has_work).tolist() == sorted({int(launch) for launch in work} - {-1})


@given(records(flow=flows))
def test_numbers_are_dense_shared_within_a_launch_and_each_arrow_has_one_start_and_some_end(rows: Records) -> None:
    batches = _batches(rows, 4)
    join = join_launches(batches)
    result = link(batches, join)
    number = [value for columns in result.columns for value in columns.id.tolist()]
    flow, kind, start = (
        [value for columns in result.columns for value in getattr(columns, name).tolist()]
        for name in ("flow_id", "flow_type", "flow_start")
    )
    assert {*number, *flow} - {0} == set(range(2**30, result.next_id))
    assert all(
        (number[a] == number[b]) == (join.leader[a] == join.leader[b]) for a in range(len(rows)) for b in range(a)
    )
    ends = Counter((one, leaves) for one, leaves in zip(flow, start, strict=True) if one)
    assert all(ends[one, 1] == 1 and ends[one, 0] >= 1 for one, _ in ends)
    assert len({(one, of) for one, of in zip(flow, kind, strict=True) if one}) == len(set(flow) - {0})
    explicit = sum(one.flow is not None for one in rows)
    drawn = sum(1 for one, has in zip(rows, flow, strict=True) if one.flow is not None and has)
    assert explicit - drawn == result.counts.duplicate_starts + result.counts.loose_ends


@given(records())
def test_ids_spread_within_a_launch_and_nowhere_else(rows: Records) -> None:
    batches = _batches(rows, 4)
    join = join_launches(batches)
    result = link(batches, join, known_ops=lambda ops: ops != 2)
    given_ops = [0 if one.linked == 2 else one.linked for one in rows]
    linked = [value for columns in result.columns for value in columns.linked.tolist()]
    for row, op in enumerate(linked):
        leader = int(join.launch[row]) if join.launch[row] >= 0 else row
        family = {given_ops[r] for r in range(len(rows)) if r == leader or join.launch[r] == leader} - {0}
        assert op == given_ops[row] if given_ops[row] else op in (family or {0})
    assert result.counts.linked + result.counts.unlinked == sum(one.activity_type.is_device_work for one in rows)


# an outer range begins before the inner one, so its id is smaller and there are no circles
parents = st.dictionaries(st.integers(1, 6), st.integers(0, 5)).map(lambda d: {c: p for c, p in d.items() if p < c})


@given(records(max_size=40), parents, st.sampled_from([0, 1]))
def test_spans_are_true_and_never_cross_on_a_row_as_written(rows: Records, around: dict[int, int], width: int) -> None:
    batches = _batches(rows, 9)
    result = link(batches, join_launches(batches))
    spans = annotation_spans(batches, result, around, widened_by_ns=width)
    written = [
        (user, device, resource, start - width, end + width)
        for user, device, resource, start, end in zip(
            *(getattr(spans, name).tolist() for name in ("user_id", "device", "resource", "start", "end")), strict=True
        )
    ]
    home = {(row.device_id, row.id): int(row.name.split()[1]) for row in spans.extra_rows}
    true = _true_spans(rows, [v for columns in result.columns for v in columns.linked_user.tolist()], around)
    assert {(user, device, home.get((device, resource), resource)) for user, device, resource, _, _ in written} == set(
        true
    )
    for user, device, resource, start, end in written:
        first, last = true[user, device, home.get((device, resource), resource)]
        assert first - width <= start <= first
        assert last <= end <= last + width
    for a in written:
        assert not any(a[1:3] == b[1:3] and a[3] < b[3] < a[4] < b[4] for b in written)


def _true_spans(rows: Records, users: list[int], around: dict[int, int]) -> dict[tuple[int, int, int], tuple[int, int]]:
    found: dict[tuple[int, int, int], tuple[int, int]] = {}
    for one, innermost in zip(rows, users, strict=True):
        user, seen = innermost, set()
        while one.activity_type.is_device_work and user and user not in seen:
            seen.add(user)
            key = (user, one.device, one.resource)
            first, last = found.get(key, (one.start_ns, one.end_ns))
            found[key] = (min(first, one.start_ns), max(last, one.end_ns))
            user = around.get(user, 0)
    return found


intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=40)


def _sorted(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(((start, start + length) for start, length in pairs), key=lambda one: (one[0], -one[1]))


@given(intervals)
def test_crossings_are_those_of_the_definition(pairs: list[tuple[int, int]]) -> None:
    ordered = _sorted(pairs)
    start, end = (np.array([one[i] for one in ordered], dtype=np.int64) for i in (0, 1))
    slow = [any(a[0] < b[0] < a[1] < b[1] for a in ordered[:j]) for j, b in enumerate(ordered)]
    assert crossings(start, end).tolist() == slow


@given(intervals)
@settings(max_examples=200)
def test_on_a_lane_intervals_are_nested_or_apart(pairs: list[tuple[int, int]]) -> None:
    ordered = _sorted(pairs)
    start, end = (np.array([one[i] for one in ordered], dtype=np.int64) for i in (0, 1))
    lanes = lanes_of(start, end)
    for lane in range(int(lanes.max()) + 1 if len(lanes) else 0):
        on_lane = lanes == lane
        assert on_lane.any()
        assert not crossings(start[on_lane], end[on_lane]).any()


@given(records(max_size=40))
def test_work_overruns_exactly_where_something_on_its_row_starts_before_it_ends(rows: Records) -> None:
    overlaps = overlapping_rows(_batches(rows, 9))
    work = [(one.device, one.resource, one.start_ns, one.end_ns) for one in rows if one.activity_type.is_device_work]
    pairs = [(a, b) for i, a in enumerate(work) for j, b in enumerate(work) if i != j and a[:2] == b[:2]]
    # two that both last, or an instant strictly inside another
    shared = [a[2] < b[3] and b[2] < a[3] for a, b in pairs]
    assert (overlaps.n_overrun > 0) == any(shared)
    crossing = {b for a, b in pairs if a[2] < b[2] < a[3] < b[3]}
    assert overlaps.n_crossing == sum(one in crossing for one in work)
