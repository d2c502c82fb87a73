"""The whole way of real buffers, to a Chrome trace, beside the one that Kineto wrote of the same program."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cuda_cupti.output import ExternalKinds, to_batches

from devprof.capture import LaneResult, PluginLedger
from devprof.export import chrome_trace
from devprof.pipeline import assemble, process
from devprof.rules import Severity, check
from devprof.store import Trace
from plugins.cuda_cupti.tests.golden_runs import GoldenRun, golden_run
from tests.unit.pipeline.recordings import clock

RUNS = ("h200_cupy", "h200_torch")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
NOT_YET_IN_TORCH_2_11 = {"graph id", "graph node id", "channel", "channel_type"}


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> GoldenRun:
    return golden_run(request.param)


def trace_of(run: GoldenRun) -> Trace:
    output = to_batches(run.records(), {0: run.facts}, external=ExternalKinds(op=5, user=4))
    start_ns, end_ns = run.about["window"]
    result = LaneResult(
        "cuda",
        PluginLedger("cuda"),
        batches=list(output.batches),
        device_infos=list(output.devices),
        resource_infos=list(output.resources),
        device_properties=list(output.properties),
    )
    lane = process(result, start_ns=start_ns, end_ns=end_ns)
    return assemble(None, [lane], clock=clock(), window_start_ns=start_ns, window_end_ns=end_ns, pid=run.about["pid"])


def written(run: GoldenRun, folder: Path) -> dict[str, Any]:
    chrome_trace(trace_of(run), folder / "trace.json")
    text: dict[str, Any] = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    return text


def slices(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == category]


def arrows(trace: dict[str, Any]) -> Counter[tuple[str, str]]:
    """Names at the start and at each end of the arrows that have both, where the end is work."""
    at = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in (*WORK, "cuda_runtime", "cuda_driver"):
            at[event["pid"], event["tid"], event["ts"]] = (event["name"], event["cat"])
    ends: dict[int, list[str]] = {}
    starts: dict[int, str] = {}
    for event in trace["traceEvents"]:
        if event.get("cat") == "ac2g":
            name, category = at.get((event["pid"], event["tid"], event["ts"]), ("", ""))
            if event["ph"] == "s":
                starts[event["id"]] = name
            elif category in WORK:
                ends.setdefault(event["id"], []).append(name)
    return Counter((starts[key], name) for key, names in ends.items() for name in names if key in starts)


def test_arrows_lead_from_the_same_calls_to_the_same_work_as_in_kinetos_trace(run: GoldenRun, tmp_path: Path) -> None:
    assert arrows(written(run, tmp_path)) == arrows(run.kineto)


def test_no_arrow_ends_that_does_not_start_or_starts_that_does_not_end(run: GoldenRun, tmp_path: Path) -> None:
    events = [event for event in written(run, tmp_path)["traceEvents"] if event.get("cat") == "ac2g"]
    ids = {phase: {event["id"] for event in events if event["ph"] == phase} for phase in "sf"}
    assert ids["s"] == ids["f"]
    assert len(ids["s"]) == sum(event["ph"] == "s" for event in events)


@pytest.mark.parametrize("category", [*WORK, "cuda_runtime", "cuda_driver", "cuda_sync"])
def test_a_written_event_has_every_arg_of_kinetos_and_no_other(category: str, run: GoldenRun, tmp_path: Path) -> None:
    ours = {(e["name"], frozenset(e["args"]) - NOT_YET_IN_TORCH_2_11) for e in slices(written(run, tmp_path), category)}
    theirs = {(e["name"], frozenset(e["args"])) for e in slices(run.kineto, category)}
    # the runs pushed other ids, so an op's id may be where the other has none
    without_op = [{(name, keys - {"External id"}) for name, keys in found} for found in (ours, theirs)]
    assert without_op[0] == without_op[1]


def test_a_wait_is_written_with_the_stream_that_it_was_for(tmp_path: Path) -> None:
    run = golden_run("h200_cupy")
    ours = Counter(
        (e["name"], e["args"]["stream"], e["args"]["device"]) for e in slices(written(run, tmp_path), "cuda_sync")
    )
    theirs = Counter((e["name"], e["args"]["stream"], e["args"]["device"]) for e in slices(run.kineto, "cuda_sync"))
    assert (theirs - ours, ours - theirs) == (Counter({("Context Sync", -1, 0): 1}), Counter())


def test_the_file_names_the_device_as_kineto_does(run: GoldenRun, tmp_path: Path) -> None:
    assert written(run, tmp_path)["deviceProperties"] == run.kineto["deviceProperties"]


def test_no_rule_finds_a_fault_in_a_trace_of_real_buffers(run: GoldenRun) -> None:
    assert [finding for finding in check(trace_of(run)) if finding.severity is Severity.ERROR] == []
