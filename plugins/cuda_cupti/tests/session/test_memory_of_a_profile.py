"""`profile_memory=True` in a session without torch: the GPU's memory in the trace, in its tables, and in its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuda_cupti.layouts import ActivityKind

import devprof
from devprof.analysis import memory_curve


def test_a_profile_has_the_curve_of_each_device_and_what_each_range_took(
    stand_in: Any, profile: Callable[..., Any], tmp_path: Path
) -> None:
    before = stand_in.allocate(100)
    with profile(profile_memory=True) as prof:
        with devprof.record_function("takes"):
            kept = stand_in.allocate(1 << 20)
            stand_in.allocate(1 << 10, kind=2)
            stand_in.allocate(1 << 12, device=1)
        with devprof.record_function("gives"):
            stand_in.free(kept)
            stand_in.free(before)
    curves = {device: curve.allocated_bytes.tolist() for device, curve in memory_curve(prof.trace).items()}
    assert curves == {"cuda:0": [(1 << 20) + 100, 100, 0], "cuda:1": [1 << 12], "cpu:pinned": [1 << 10]}
    rows = {row.key: row for row in prof.key_averages()}
    found = {name: (rows[name].device_memory_usage, rows[name].cpu_memory_usage) for name in ("takes", "gives")}
    assert found == {"takes": ((1 << 20) + (1 << 12), 1 << 10), "gives": (-(1 << 20) - 100, 0)}
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = [one for one in json.loads(path.read_text())["traceEvents"] if one["name"] == "[memory]"]
    assert {(one["ph"], one["args"]["Bytes"], one["args"]["Device Id"]) for one in events} == {
        ("i", 1 << 20, 0),
        ("i", 1 << 10, -1),
        ("i", 1 << 12, 1),
        ("i", -(1 << 20), 0),
        ("i", -100, 0),
    }
    assert prof.report.ledgers["stand-in"].lost == 0


def test_without_profile_memory_nothing_of_it_is_switched_on(stand_in: Any, profile: Callable[..., Any]) -> None:
    with profile() as prof:
        on = set(stand_in.enabled)
        stand_in.allocate(1 << 20)
    assert (ActivityKind.MEMORY2 in on, memory_curve(prof.trace)) == (False, {})
