"""Every shared case, through the whole of linking, in one batch and in many."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from devprof.link import LinkResult, annotation_spans, apply_window, join_launches, link
from devprof.model import ActivityBatch
from tests.cases.linking import CASES, OWN, Case, Gone, Kept, Span

ZERO_NS = 1_790_000_000_000_000_000
BASE = 2**30


def _batches(case: Case, size: int) -> list[ActivityBatch]:
    records = case.records_at(ZERO_NS)
    return [ActivityBatch.from_activities(records[i : i + size]) for i in range(0, len(records), size)]


def _linked(case: Case, size: int) -> tuple[list[ActivityBatch], list[int], Counter[str], LinkResult]:
    """Return the kept batches, the positions of their records in the case, what was left out, and the links."""
    batches = _batches(case, size)
    join = join_launches(batches)
    window = apply_window(batches, join, *case.window_at(ZERO_NS))
    kept, join = window.apply(batches, join)
    known = case.known_ops
    result = link(
        kept,
        join,
        known_ops=None if known is None else lambda ops: np.isin(ops, np.array(sorted(known), dtype=np.int64)),
        user_parents=case.user_parents,
        uncertainty_ns=case.uncertainty_ns,
    )
    return kept, np.flatnonzero(np.concatenate(window.masks)).tolist(), Counter(window.dropped), result


def _column(result: LinkResult, name: str) -> list[int]:
    return [value for columns in result.columns for value in getattr(columns, name).tolist()]


def _kept(result: LinkResult, positions: list[int]) -> dict[int, Kept]:
    """Say of each record what the case says of it, with the start of its arrow by position; numbers are `_sharing`'s."""
    flows, starts = _column(result, "flow_id"), _column(result, "flow_start")
    start_of = {flow: position for flow, start, position in zip(flows, starts, positions, strict=True) if start}
    columns = (_column(result, name) for name in ("linked", "linked_user", "skewed"))
    return {
        position: Kept(op, user, OWN, None if not flow else _own(start_of[flow], position), bool(skewed))
        for position, op, user, skewed, flow in zip(positions, *columns, flows, strict=True)
    }


def _own(other: int, position: int) -> int:
    return OWN if other == position else other


def _sharing(numbers: dict[int, int]) -> set[frozenset[int]]:
    """Records that share a number, whatever it is."""
    groups: dict[int, set[int]] = {}
    for position, number in numbers.items():
        groups.setdefault(number, set()).add(position)
    return {frozenset(group) for group in groups.values()}


@pytest.mark.parametrize("size", [1_000, 1, 3], ids=["one batch", "a batch per record", "batches of three"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_records_are_linked_as_the_case_says(case: Case, size: int) -> None:
    _, positions, dropped, result = _linked(case, size)
    wanted = {i: want for i, want in enumerate(case.expected) if isinstance(want, Kept)}
    assert _kept(result, positions) == {i: want._replace(number=OWN) for i, want in wanted.items()}
    assert _sharing(dict(zip(positions, _column(result, "id"), strict=True))) == _sharing(
        {i: i if want.number == OWN else want.number for i, want in wanted.items()}
    )
    assert dropped == Counter(want.reason for want in case.expected if isinstance(want, Gone))
    assert {name: getattr(result.counts, name) for name in case.counts} == dict(case.counts)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers_are_dense_positive_and_every_arrow_has_one_start_and_an_end(case: Case) -> None:
    _, _, _, result = _linked(case, 4)
    ids, flows, types, starts = (_column(result, name) for name in ("id", "flow_id", "flow_type", "flow_start"))
    used = {*ids, *flows} - {0}
    assert used == set(range(BASE, result.next_id))
    ends = Counter((flow, start) for flow, start in zip(flows, starts, strict=True) if flow)
    assert {flow: ends[flow, 1] for flow, _ in ends} == {flow: 1 for flow, _ in ends}
    assert all(ends[flow, 0] >= 1 for flow, _ in ends)
    assert [bool(kind) for kind in types] == [bool(flow) for flow in flows]
    assert [start for start, flow in zip(starts, flows, strict=True) if not flow and start] == []


@pytest.mark.parametrize("size", [1_000, 2], ids=["one batch", "batches of two"])
@pytest.mark.parametrize("case", [case for case in CASES if case.spans is not None], ids=str)
def test_user_ranges_are_spanned_as_the_case_says(case: Case, size: int) -> None:
    kept, _, _, result = _linked(case, size)
    spans = annotation_spans(kept, result)
    rows = {(row.device_id, row.id): int(row.name.split()[-1]) for row in spans.extra_rows}
    streams = {(row.device_id, row.id): int(row.name.split()[1]) for row in spans.extra_rows}
    found = [
        Span(
            user,
            device,
            streams.get((device, resource), resource),
            start - 1 - ZERO_NS,
            end + 1 - ZERO_NS,
            rows.get((device, resource), 1),
        )
        for user, device, resource, start, end in zip(
            spans.user_id.tolist(),
            spans.device.tolist(),
            spans.resource.tolist(),
            spans.start.tolist(),
            spans.end.tolist(),
            strict=True,
        )
    ]
    assert found == list(case.spans or ())
    assert spans.n_displaced == sum(span.row > 1 for span in found)
