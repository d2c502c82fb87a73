"""Real buffers, and what Kineto wrote of the same programs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from cuda_cupti.decode import merged
from cuda_cupti.layouts import ActivityKind, expected
from cuda_cupti.output import ExternalKinds, Output, to_batches

from devprof.link import join_launches
from devprof.model import GenericTraceActivity
from plugins.cuda_cupti.tests.golden_runs import GoldenRun, golden_run

RUNS = ("h200_cupy", "h200_torch")
EXTERNAL = ExternalKinds(op=5, user=4)
USER_BASE = 1 << 40
OF_THE_STOP = {"cuda_runtime": Counter({"cudaDeviceSynchronize": 1}), "cuda_sync": Counter({"Context Sync": 1})}
"""What torch.profiler's own stop adds to its trace."""
DERIVED = {"External id", "device", "stream", "correlation"}
"""Args that devprof writes itself, from the columns."""
NOT_YET_IN_TORCH_2_11 = {"graph id", "graph node id", "channel", "channel_type"}
"""Args of later versions of Kineto."""


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> GoldenRun:
    return golden_run(request.param)


def output_of(run: GoldenRun) -> Output:
    return to_batches(run.records(), {0: run.facts}, external=EXTERNAL)


def by_category(output: Output) -> dict[str, list[GenericTraceActivity]]:
    found: dict[str, list[GenericTraceActivity]] = {}
    for batch in output.batches:
        for activity in batch.activities():
            found.setdefault(activity.activity_type.label, []).append(activity)
    return found


def of_kineto(run: GoldenRun, category: str) -> list[dict[str, Any]]:
    return [event for event in run.kineto["traceEvents"] if event["ph"] == "X" and event["cat"] == category]


def test_every_byte_of_a_real_buffer_is_a_record(run: GoldenRun) -> None:
    whole = merged(run.records())
    assert (whole.n_bytes, whole.lost_bytes, whole.stops) == (sum(map(len, run.buffers)), 0, ())
    assert {str(kind): len(rows) for kind, rows in whole.of.items()} == run.about["counts"]


def test_the_real_library_is_as_long_as_the_table(run: GoldenRun) -> None:
    table = expected(run.about["cupti_version"])
    assert {kind: run.layout.strides.get(kind) for kind in table.strides} == dict(table.strides)


@pytest.mark.parametrize("category", ["kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cuda_sync"])
def test_what_is_shown_has_kinetos_names_as_often_as_in_kinetos_trace(run: GoldenRun, category: str) -> None:
    ours = Counter(a.activity_name for a in by_category(output_of(run)).get(category, []))
    theirs = Counter(event["name"] for event in of_kineto(run, category))
    assert theirs - ours == OF_THE_STOP.get(category, Counter())
    assert ours - theirs == Counter()


def test_overheads_have_names_of_kinetos(run: GoldenRun) -> None:
    names = {a.activity_name for a in by_category(output_of(run))["overhead"]}
    assert names <= {"Activity Buffer Request", "Lazy Function Loading", "Buffer Flush"}
    assert names >= {event["name"] for event in of_kineto(run, "overhead")}


@pytest.mark.parametrize("category", ["kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cuda_sync"])
def test_args_have_kinetos_keys_in_kinetos_order(run: GoldenRun, category: str) -> None:
    ours = {
        (a.activity_name, tuple(key for key in a.metadata if key not in NOT_YET_IN_TORCH_2_11 | DERIVED))
        for a in by_category(output_of(run)).get(category, [])
    }
    theirs = {
        (event["name"], tuple(key for key in event["args"] if key not in DERIVED)) for event in of_kineto(run, category)
    }
    assert ours == theirs


def test_kernels_have_the_values_that_kineto_gives_them(run: GoldenRun) -> None:
    keys = ["queued", "context", "registers per thread", "shared memory", "grid", "block", "est. achieved occupancy %"]

    def rounded(name: str, args: dict[str, Any], stream: int) -> tuple[Any, ...]:
        values = [tuple(args[key]) if key in ("grid", "block") else args[key] for key in keys]
        # Kineto prints a 32-bit float
        return (name, stream, *values, *(f"{args[key]:.4f}" for key in ("blocks per SM", "warps per SM")))

    ours = Counter(
        rounded(a.activity_name, dict(a.metadata), a.resource) for a in by_category(output_of(run))["kernel"]
    )
    theirs = Counter(rounded(e["name"], e["args"], e["args"]["stream"]) for e in of_kineto(run, "kernel"))
    assert ours == theirs


def test_copies_and_sets_have_kinetos_bytes_and_bandwidth_over_their_own_time(run: GoldenRun) -> None:
    for category in ("gpu_memcpy", "gpu_memset"):
        ours = by_category(output_of(run))[category]
        assert Counter((a.activity_name, a.metadata["bytes"], a.resource) for a in ours) == Counter(
            (e["name"], e["args"]["bytes"], e["args"]["stream"]) for e in of_kineto(run, category)
        )
        for a in ours:
            assert a.metadata["memory bandwidth (GB/s)"] == a.metadata["bytes"] / a.duration_ns


def test_the_device_has_the_properties_that_kineto_gives_it(run: GoldenRun) -> None:
    (device,) = output_of(run).properties
    assert (device, list(device)) == (run.kineto["deviceProperties"][0], list(run.kineto["deviceProperties"][0]))


def test_every_piece_of_work_has_one_launch_that_began_before_it_and_the_graphs_have_many(run: GoldenRun) -> None:
    batches = output_of(run).batches
    join = join_launches(batches)
    start = np.concatenate([batch.start for batch in batches])
    work = np.flatnonzero(join.on_device)
    assert (join.launch[work] >= 0).all()
    assert (start[join.launch[work]] <= start[work]).all()
    of_graph = Counter(
        a.id
        for a in by_category(output_of(run))["kernel"]
        if "graph id" in a.metadata and "graph node id" in a.metadata
    )
    assert sorted(of_graph.values()) == ([2, 2, 2] if run.about.get("launched") else [3, 3])


def test_ids_that_were_pushed_come_back_on_calls_and_work_with_the_thread_that_pushed_them(run: GoldenRun) -> None:
    threads = dict(run.about["pushes"])
    found = by_category(output_of(run))
    linked = [
        a for category in ("kernel", "gpu_memcpy", "cuda_runtime", "cuda_driver") for a in found.get(category, [])
    ]
    with_id = [a for a in linked if a.linked]
    assert {(a.linked, a.thread_id, a.linked_user - a.linked) for a in with_id} <= {
        (pushed, thread, USER_BASE) for pushed, thread in threads.items()
    }
    assert {a.linked for a in with_id} == set(threads)
    assert all(a.linked_user == 0 for a in linked if not a.linked)


def test_the_innermost_id_counts_and_work_outside_every_range_has_none() -> None:
    kernels = by_category(output_of(golden_run("h200_cupy")))["kernel"]
    doubles = {a.linked for a in kernels if "<double>" in a.activity_name and "graph id" not in a.metadata}
    assert doubles == {1000 + i for i in range(0, 40, 4)}
    assert sum(a.linked == 0 for a in kernels) == 1
    assert [a.linked for a in kernels if a.activity_name == "devprof_smem"] == [200]


def test_a_wait_for_an_event_names_the_stream_and_the_recording_where_kineto_of_torch_2_11_could_not() -> None:
    waits = by_category(output_of(golden_run("h200_cupy")))["cuda_sync"]
    events = {a.metadata["event_id"]: a for a in by_category(output_of(golden_run("h200_cupy")))["cuda_event"]}
    on_event = {a.activity_name: a for a in waits if "wait_on_cuda_event_id" in a.metadata}
    assert set(on_event) == {"Stream Wait Event", "Event Sync"}
    for wait in on_event.values():
        recording = events[wait.metadata["wait_on_cuda_event_id"]]
        assert wait.metadata["wait_on_cuda_event_record_corr_id"] == recording.id
        assert wait.metadata["wait_on_stream"] == recording.metadata["stream"]


def test_streams_are_named_and_waits_stand_beside_them() -> None:
    output = output_of(golden_run("h200_cupy"))
    assert [(info.id, info.name, info.label) for info in output.devices] == [(0, "NVIDIA H200", "GPU 0")]
    assert [(info.id, info.name) for info in output.resources] == [
        *((stream, f"stream {stream}") for stream in (7, 13, 14, 16)),
        (999_999, "device (sync)"),
        *((1_000_000 + stream, f"stream {stream} (sync)") for stream in (7, 13, 14, 16)),
    ]


def test_nothing_real_is_lost_and_noise_is_counted() -> None:
    outputs = {name: output_of(golden_run(name)) for name in RUNS}
    assert {name: (dict(output.lost), output.filtered) for name, output in outputs.items()} == {
        "h200_cupy": ({}, 271),
        "h200_torch": ({}, 455),
    }


def test_real_kernels_lie_in_the_window_in_which_they_were_launched(run: GoldenRun) -> None:
    low, high = run.about["window"]
    assert all(low <= a.start_ns < a.end_ns <= high for a in by_category(output_of(run))["kernel"])


def test_a_buffer_that_is_cut_anywhere_loses_only_its_end() -> None:
    run = golden_run("h200_cupy")
    buffer = max(run.buffers, key=len)
    whole = merged(run.records()).of[ActivityKind.CONCURRENT_KERNEL]["correlationId"].tolist()
    for size in range(0, len(buffer), 997):
        records = GoldenRun((buffer[:size],), run.layout, run.names, run.facts, {}, {}).records()
        output = to_batches(records, {0: run.facts})
        kernels = [a.id for a in by_category(output).get("kernel", [])]
        assert set(kernels) <= set(whole)
        assert records[0].lost_bytes < 216
