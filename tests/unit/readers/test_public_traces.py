"""Public GPU traces, where they are at hand: read completely, exactly, and back through devprof's own exporter.

The folder is DEVPROF_TRACES, or `shared/traces` beside the checkout.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devprof.export import chrome_trace
from devprof.model import ActivityType
from devprof.pipeline.files import load_kineto
from devprof.store import Trace
from devprof.store.readers import read_kineto

_FOLDER = Path(os.environ.get("DEVPROF_TRACES") or Path(__file__).parents[4] / "shared/traces")
_FILES = sorted(_FOLDER.glob("*.json.gz"))
_LABELS = {kind.label for kind in ActivityType}

pytestmark = pytest.mark.skipif(
    not _FILES, reason=f"no traces in {_FOLDER}; DEVPROF_TRACES names a folder that has some"
)


@pytest.fixture(params=_FILES or [None], ids=lambda path: path.name if path else "none")
def path(request: pytest.FixtureRequest) -> Path:
    return request.param  # type: ignore[no-any-return]


def _events(path: Path) -> tuple[int, list[dict[str, Any]]]:
    with gzip.open(path) as file:
        content = json.load(file, parse_float=Decimal)
    return content.get("baseTimeNanoseconds", 0), content["traceEvents"]


def _ns(us: object) -> int:
    return int((Decimal(str(us)) * 1000).to_integral_value())


def _totals(trace: Trace, kind: ActivityType) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for event in trace.of_type(kind).tolist():
        totals[trace.name_of(event)] += int(trace.duration_ns[event])
    return dict(totals)


@pytest.mark.parametrize("kind", [ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.CPU_OP])
def test_totals_equal_a_plain_recount_of_the_file_to_the_nanosecond(path: Path, kind: ActivityType) -> None:
    expected: Counter[str] = Counter()
    for event in _events(path)[1]:
        if event["ph"] == "X" and event["cat"] == kind.label:
            expected[event["name"]] += _ns(event["dur"])
    assert _totals(load_kineto(path), kind) == dict(expected)


def test_every_event_and_arrow_is_there(path: Path) -> None:
    trace = load_kineto(path)
    base, events = _events(path)
    expected = [
        (event["cat"], event["name"], base + _ns(event["ts"]))
        for event in events
        if event["ph"] == "X" and event["cat"] in _LABELS
    ]
    kinds = [ActivityType(number).label for number in trace.activity_type.tolist()]
    names = [trace.name_of(event) for event in range(len(trace))]
    assert sorted(zip(kinds, names, trace.start_ns.tolist(), strict=True)) == sorted(expected)
    arrows = Counter(event["ph"] == "s" for event in events if event["ph"] in "sf")
    left_out = trace.facts["file"]["left_out"]  # type: ignore[index]
    assert Counter((trace.flow_start[trace.flow_id != 0] == 1).tolist()) == arrows
    assert left_out == {}


def test_device_work_hangs_under_its_launch(path: Path) -> None:
    trace = load_kineto(path)
    work = trace.of_type(ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET)
    launches = trace.of_type(ActivityType.CUDA_RUNTIME, ActivityType.CUDA_DRIVER)
    known = set(trace.id[launches].tolist())
    for event in work.tolist():
        above = int(trace.parent[event])
        if int(trace.id[event]) in known:
            assert trace.id[above] == trace.id[event]
            assert above in set(launches.tolist()) if len(work) < 200 else True


def test_device_work_belongs_to_the_op_in_which_it_was_launched(path: Path) -> None:
    trace = load_kineto(path)
    work = trace.of_type(ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET)
    ranges = set(trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION).tolist())
    launched = [(event, int(trace.parent[event])) for event in work.tolist() if trace.parent[event] >= 0]
    for event, above in launched:
        while above >= 0 and above not in ranges:
            above = int(trace.parent[above])
        assert int(trace.linked[event]) == (int(trace.id[above]) if above >= 0 else 0)


def test_what_is_read_is_the_same_after_an_export(path: Path, tmp_path: Path) -> None:
    first = read_kineto(path)
    chrome_trace(first, tmp_path / "again.json")
    again = read_kineto(tmp_path / "again.json")
    assert _rows(again) == _rows(first)
    assert {key: len(column) for key, column in again.items.items()} == {
        key: len(column) for key, column in first.items.items()
    }


def _rows(trace: Trace) -> list[tuple[object, ...]]:
    """Return what an export keeps of each event: all but the row, which may become a lane, and loose ends of arrows."""
    columns = ("activity_type", "id", "linked", "start_ns", "end_ns")
    whole = np.isin(trace.flow_id, np.intersect1d(*(trace.flow_id[trace.flow_start == side] for side in (0, 1))))
    flows = np.where(whole, trace.flow_id, 0).tolist()
    fixed = zip(*(getattr(trace, key).tolist() for key in columns), flows, strict=True)
    with_items = len(trace) < 5000
    return sorted(
        (trace.name_of(event), *numbers, repr(trace.items_of(event)) if with_items else "")
        for event, numbers in enumerate(fixed)
    )
