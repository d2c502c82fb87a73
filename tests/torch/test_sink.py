"""`trace_of`: a finished torch profile as a Trace, event by event what Kineto writes to its file."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import toyland
from kineto_file import kinds_of, shown_by_file, shown_by_trace
from torch.profiler import record_function, schedule
from toyland import BOTH, CPU, Join, Program, Runtime, kernel

import devprof.torch
from devprof.export.report.bins import span_of
from devprof.model import ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from devprof.pipeline.files import load
from devprof.store import ItemKind, PlaceKind, RawJson, Trace


def traced(folder: Path, body: Callable[[], Any], *, activities: Any = (CPU,), **options: Any) -> tuple[Trace, Path]:
    """Run `body` in a profile; return its Trace, and the file that torch writes of it."""
    with toyland.profile(activities, **options) as prof:
        body()
    trace = devprof.torch.trace_of(prof)
    path = folder / "kineto.json"
    prof.export_chrome_trace(str(path))
    return trace, path


def assert_shows_the_same(trace: Trace, path: Path) -> None:
    """The trace shows what the file shows; named part by part, so that a failure can be read."""
    given, expected = shown_by_trace(trace), shown_by_file(path)
    assert given.lines - expected.lines == {}, "more events than in the file"
    assert expected.lines - given.lines == {}, "fewer events than in the file"
    assert given.arrows == expected.arrows
    assert given.processes == expected.processes
    assert given.threads == expected.threads
    assert given.window_end_ns == expected.window_end_ns


def a_step() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with record_function("the step"):
        model(torch.ones(3, 4)).sum().backward()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"record_shapes": True, "with_flops": True},
        {"profile_memory": True},
        {"with_stack": True},
        {"record_shapes": True, "with_flops": True, "profile_memory": True, "with_stack": True},
    ],
    ids=lambda options: "+".join(options) or "plain",
)
def test_a_host_session_is_event_by_event_what_kineto_writes(tmp_path: Path, options: dict[str, Any]) -> None:
    trace, path = traced(tmp_path, a_step, **options)
    assert_shows_the_same(trace, path)
    assert {key: trace.facts[key] for key in options} == options
    assert len(trace.of_type(ActivityType.CPU_OP)) > 10


def everything(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
    """Records of every role, on two devices, with items of every type."""
    items = {"whole": -7, "real": 0.1, "flag": True, "text": "a, text: 'x'", "grid": (1, 2, 3), "huge": 2**62}
    return [
        kernel("k", at=start_ns + 10, id=1, metadata=items),
        kernel("k", at=start_ns + 200, id=2, device=1, resource=9, metadata={"whole": 8, "real": -2.5e-9}),
        GenericTraceActivity(ActivityType.GPU_MEMCPY, "copy", start_ns + 400, start_ns + 450, id=3, resource=4),
        GenericTraceActivity(ActivityType.GPU_MEMSET, "set", start_ns + 500, start_ns + 500, id=4),
        GenericTraceActivity(ActivityType.CUDA_SYNC, "wait", start_ns + 600, start_ns + 650, id=5),
        GenericTraceActivity(
            ActivityType.MTIA_COUNTERS, "load", start_ns + 700, start_ns + 700, counter_values={"busy": 0.25, "free": 3}
        ),
    ]


def test_a_device_session_is_event_by_event_what_kineto_writes(join: Join, tmp_path: Path) -> None:
    join(
        script=everything,
        devices=[DeviceInfo(0, "First", label="a label"), DeviceInfo(1, "Second", sort_index=7)],
        resources=[ResourceInfo(4, 0, "copies", sort_index=-1), ResourceInfo(5, 0, "idle")],
    )
    trace, path = traced(tmp_path, lambda: torch.ones(2) + 1, activities=BOTH)
    assert_shows_the_same(trace, path)
    work = trace.named("k")
    assert [trace.items_of(int(event))["whole"] for event in work] == [-7, 8]
    assert trace.items_of(int(work[0])).items() >= {
        ("real", 0.1),
        ("flag", True),
        ("text", "a, text: 'x'"),
        ("grid", (1, 2, 3)),
        ("huge", 2**62),
    }
    kinds = kinds_of(trace)
    assert [kinds[key] for key in ("whole", "real", "flag", "text", "grid")] == [
        ItemKind.INT,
        ItemKind.FLOAT,
        ItemKind.BOOL,
        ItemKind.STRING,
        ItemKind.INT_LIST,
    ]
    assert {key: column.values.tolist() for key, column in trace.counters.items()} == {"busy": [0.25], "free": [3.0]}


def test_launches_stand_below_their_op_and_device_work_below_its_launch(join: Join, tmp_path: Path) -> None:
    runtime = Runtime()
    join(script=runtime.script)

    def body() -> None:
        with record_function("range"):
            toyland.run_in_op(lambda: runtime.launch("linked", works=2))
        runtime.launch("not linked")

    trace, path = traced(tmp_path, body, activities=BOTH)
    assert_shows_the_same(trace, path)
    (op,) = trace.named("toy::run")
    (launch,) = trace.named("launch linked")
    assert trace.parent[launch] == op
    assert trace.name_of(int(trace.parent[op])) == "range"
    assert trace.parent[trace.named("linked")].tolist() == [launch, launch]
    assert trace.linked[trace.named("linked")].tolist() == [trace.id[op]] * 2
    assert trace.linked[launch] == trace.id[op]
    assert [trace.name_of(int(above)) for above in trace.parent[trace.named("not linked")]] == ["launch not linked"]
    assert trace.linked[trace.named("not linked")].tolist() == [0]


def test_device_work_without_a_launch_stands_below_its_op(join: Join, tmp_path: Path) -> None:
    runtime = Runtime()
    join(script=runtime.script)
    trace, path = traced(
        tmp_path, lambda: toyland.run_in_op(lambda: runtime.launch("bare", launches=False)), activities=BOTH
    )
    assert_shows_the_same(trace, path)
    assert trace.parent[trace.named("bare")].tolist() == trace.named("toy::run").tolist()


def test_places_tell_the_host_from_devices_and_their_backend(join: Join, tmp_path: Path) -> None:
    properties = [{"id": 1, "memory": 2**34}]
    join(script=everything, torch_device=toyland.backend(), methods={"get_device_properties": lambda: properties})
    trace, _ = traced(tmp_path, lambda: torch.ones(2) + 1, activities=BOTH)
    assert [(place.kind, place.backend) for place in trace.places] == [
        (PlaceKind.HOST, "cpu"),
        (PlaceKind.DEVICE, toyland.backend()),
        (PlaceKind.DEVICE, toyland.backend()),
    ]
    assert [dict(place.properties) for place in trace.places[1:]] == [{}, {"id": 1, "memory": 2**34}]
    assert {place.id for place in trace.places if place.kind is PlaceKind.DEVICE} == {0, 1}
    on_device = trace.on_device
    assert (on_device == np.isin(trace.activity_type, [3, 4, 5, 15, 17])).all()


@pytest.mark.parametrize("numbers", [(0, 0), (150, 0), (0, 150), (99, 100), (2**30, 0)], ids=str)
@pytest.mark.parametrize("of_the_session", ["", "first", "second"], ids=lambda whose: whose or "none")
def test_a_device_is_its_own_plugins_whatever_its_number_and_whoever_takes_part(
    join: Join, tmp_path: Path, numbers: tuple[int, int], of_the_session: str
) -> None:
    whose = {"first": "first", "second": "second"}
    for label, device in zip(whose, numbers, strict=True):
        served = toyland.backend() if label == of_the_session else None
        work = partial(
            lambda label, device, start_ns, end_ns: [kernel(label, at=start_ns, device=device)], label, device
        )
        join(label=label, torch_device=served, script=work)
        whose[label] = served or label
    trace, path = traced(tmp_path, lambda: torch.ones(2) + 1, activities=BOTH)
    for one in (trace, load(path)):
        found = {label: {one.places[place].backend for place in one.place[one.named(label)]} for label in whose}
        assert found == {label: {backend} for label, backend in whose.items()}
        assert "backends" not in {**one.facts, **dict(one.facts.get("report") or {})}  # type: ignore[call-overload]


@pytest.mark.parametrize("late_ns", [0, 20_000_000], ids=["work that has ended", "work that is still running"])
def test_the_users_window_ends_with_the_block_and_its_work_and_not_with_the_drain(
    join: Join, tmp_path: Path, late_ns: int
) -> None:
    def slow(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        time.sleep(0.05)
        return [kernel("k", at=end_ns - 100, ns=100 + late_ns)]

    join(script=slow)
    with toyland.profile(BOTH, with_stack=True) as prof:
        torch.ones(2) + 1
    prof.export_chrome_trace(str(tmp_path / "kineto.json"))
    end_ns = devprof.report_of(prof).end_ns
    for trace in (devprof.torch.trace_of(prof), load(tmp_path / "kineto.json")):
        assert trace.user_window_ns == (trace.window_start_ns, end_ns + late_ns)
        assert trace.window_end_ns - end_ns >= 50_000_000
        drains = [at for at, name in enumerate(map(trace.name_of, range(len(trace)))) if "_drain_quietly" in name]
        assert [int(trace.end_ns[at]) - end_ns >= 50_000_000 for at in drains] == [True], "torch keeps it open"
        span = span_of(trace)
        assert span is not None
        assert span.end_ns == end_ns + late_ns


def test_a_profile_of_the_device_alone_has_its_work_and_no_ops(join: Join, tmp_path: Path) -> None:
    join(script=everything)
    trace, path = traced(tmp_path, lambda: torch.ones(2) + 1, activities=[toyland.DEVICE])
    assert_shows_the_same(trace, path)
    assert len(trace.named("k")) == 2
    assert len(trace.of_type(ActivityType.CPU_OP)) == 0


def test_host_events_are_in_the_order_of_entering_and_their_parents_are_around_them(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, a_step, with_stack=True, profile_memory=True)
    for row in range(len(trace.rows)):
        start = trace.start_ns[trace.row == row]
        assert (start[1:] >= start[:-1]).all()
    child = np.flatnonzero(trace.parent >= 0)
    above = trace.parent[child]
    assert (trace.row[above] == trace.row[child]).all()
    assert (trace.start_ns[above] <= trace.start_ns[child]).all()
    assert (trace.end_ns[above] >= trace.end_ns[child]).all()
    (linear,) = {trace.name_of(int(trace.parent[event])) for event in trace.named("aten::addmm")}
    assert linear == "aten::linear"


def test_the_tree_of_ops_is_torchs_own() -> None:
    """torch builds it with a stack per thread; `EventList` shows it as `cpu_parent`."""
    with toyland.profile([CPU], record_shapes=True) as prof:
        a_step()
    trace = devprof.torch.trace_of(prof)
    expected = {event.id: event.cpu_parent.id if event.cpu_parent else 0 for event in prof.events()}
    listed = {int(trace.id[event]): int(event) for event in range(len(trace)) if int(trace.id[event]) in expected}
    given = {}
    for own, event in listed.items():
        above = int(trace.parent[event])
        while above >= 0 and int(trace.id[above]) not in expected:  # what torch's list leaves out
            above = int(trace.parent[above])
        given[own] = int(trace.id[above]) if above >= 0 else 0
    assert given == expected


def test_what_only_torchs_events_know_stands_beside_the_items() -> None:
    options = {"record_shapes": True, "with_flops": True}
    with toyland.profile([CPU], **options) as prof:
        a_step()
    trace = devprof.torch.trace_of(prof)
    events = {event.id: event for event in prof.events() if event.name != "[memory]"}
    ops = [event for event in range(len(trace)) if int(trace.id[event]) in events]
    assert len(ops) > 20
    for op in ops:
        event = events[int(trace.id[op])]
        default = 7 if trace.activity_type[op] == ActivityType.USER_ANNOTATION else 0
        assert trace.item("Record scope", op) == (event.scope if event.scope != default else None)
        assert (trace.item("Flops", op) or 0) == event.flops
        assert (trace.item("Overload name", op) or "") == event.overload_name
        assert (trace.item("End thread", op) is not None) == event.is_async
    assert sum(trace.items["Flops"].values) > 0


def test_an_op_that_ends_on_another_thread_names_it(tmp_path: Path) -> None:
    ranges = []

    def other_thread() -> None:
        ranges[0].__exit__(None, None, None)

    def body() -> None:
        ranges.append(record_function("moved"))
        ranges[0].__enter__()
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()

    trace, path = traced(tmp_path, body)
    assert_shows_the_same(trace, path)
    (moved,) = trace.named("moved")
    assert trace.item("End thread", int(moved)) == 0  # torch recorded nothing else on that thread


def test_threads_have_rows_of_their_own(tmp_path: Path) -> None:
    from torch._C._profiler import _ExperimentalConfig

    def work() -> None:
        torch.ones(3) + 1

    def body() -> None:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    trace, path = traced(tmp_path, body, experimental_config=_ExperimentalConfig(profile_all_threads=True))
    assert_shows_the_same(trace, path)
    adds = trace.named("aten::add")
    assert len(adds) == 4
    numbers = trace.facts["torch_thread_numbers"]
    assert isinstance(numbers, dict)
    assert {str(trace.rows[row].id) for row in trace.row[adds]} <= numbers.keys()


HOSTILE = [
    'a "quote"',
    "back\\slash",
    "tab\tand\nline",
    "schön 中文 🚀",
    "",
    "kernel",
    "Pi",
    "x" * 10_000,
    '", "key": 1, "',
    "\x01\x1f\x7f",
    "[1, 2]",
    "null",
]


def test_names_are_kept_as_they_were_recorded_whatever_is_in_them() -> None:
    """Kineto's file of the same session is no JSON any more; C strings end at a NUL, in torch already."""
    with toyland.profile([CPU]) as prof:
        for name in HOSTILE:
            with record_function(name):
                pass
    trace = devprof.torch.trace_of(prof)
    given = [trace.name_of(int(event)) for event in trace.of_type(ActivityType.USER_ANNOTATION)]
    assert given == [event.name() for event in prof.profiler.kineto_results.events()]
    if torch.__version__ < "2.14":  # which cleans some of them itself
        assert given == HOSTILE


def test_a_names_strange_bytes_stay_readable() -> None:
    """A range's name may come from C++; bytes that are no UTF-8 are shown as escapes."""
    from devprof.torch.sink_columns import _text

    assert _text(b"ab\xff\xc3\xa9") == "ab\\xff\u00e9"


def test_what_an_op_was_called_with_keeps_its_type_and_its_text() -> None:
    """torch puts texts into its metadata without escapes: Kineto's file of this session is no JSON."""
    arguments = {
        "plain": "abc",
        "strange": "a\\b, \u00e9",
        "whole": 3,
        "real": 0.5,
        "flag": True,
        "huge": 2**62,
        "texts": ["a", 'b"c'],
    }
    with toyland.profile([CPU], record_shapes=True) as prof:
        for _ in range(3):
            with torch._C._profiler._RecordFunctionFast("called", [torch.ones(2, 3), 7], arguments):
                pass
        with torch._C._profiler._RecordFunctionFast("not a number", [], {"real": float("nan")}):
            pass
    trace = devprof.torch.trace_of(prof)
    for event in trace.named("called").tolist():
        items = trace.items_of(event)
        assert {key: items[key] for key in arguments if key != "texts"} == {
            key: value for key, value in arguments.items() if key != "texts"
        }
        assert json.loads(str(items["texts"])) == '["a", "b"c"]'  # no list any more, so the text of one
        assert items["Input Dims"] == RawJson("[[2, 3], []]")
        assert items["Concrete Inputs"] == RawJson('["", "7"]')
    (other,) = trace.named("not a number").tolist()
    assert math.isnan(float(str(trace.item("real", other))))
    assert trace.items["real"].kind is ItemKind.FLOAT


def test_a_schedules_cycles_are_traces_of_their_own(tmp_path: Path) -> None:
    traces: list[Trace] = []

    def ready(prof: torch.profiler.profile) -> None:
        traces.append(devprof.torch.trace_of(prof))
        path = tmp_path / f"{len(traces)}.json"
        prof.export_chrome_trace(str(path))
        assert_shows_the_same(traces[-1], path)

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with toyland.profile([CPU], schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(8):
            torch.ones(2) + 1
            prof.step()
    assert [
        sorted(trace.strings[n] for n in set(trace.name.tolist()) if "Step" in trace.strings[n]) for trace in traces
    ] == [
        ["ProfilerStep#2", "ProfilerStep#3"],
        ["ProfilerStep#6", "ProfilerStep#7"],
    ]
    assert traces[0].window_end_ns <= traces[1].window_start_ns


def test_accumulated_events_do_not_hide_the_latest_cycle() -> None:
    plan = schedule(wait=0, warmup=1, active=1, repeat=2)
    with toyland.profile([CPU], schedule=plan, acc_events=True) as prof:
        for _ in range(4):
            torch.ones(2) + 1
            prof.step()
    trace = devprof.torch.trace_of(prof)
    assert [name for name in trace.strings if name.startswith("ProfilerStep")] == ["ProfilerStep#3"]


def test_the_autograd_profile_and_its_result_give_the_same_trace() -> None:
    with torch.autograd.profiler.profile(use_kineto=True) as prof:
        torch.ones(2) + 1
    first, second = devprof.torch.trace_of(prof), devprof.torch.trace_of(prof.kineto_results)
    assert len(first) > 0
    assert shown_by_trace(first) == shown_by_trace(second)


def test_a_trace_without_the_processing_of_events_is_whole_as_well(tmp_path: Path) -> None:
    from torch._C._profiler import _ExperimentalConfig

    trace, path = traced(tmp_path, a_step, experimental_config=_ExperimentalConfig(trace_only=True))
    assert_shows_the_same(trace, path)
    assert len(trace.named("aten::addmm")) == 2


def test_an_empty_profile_is_an_empty_trace(tmp_path: Path) -> None:
    trace, path = traced(tmp_path, lambda: None)
    assert_shows_the_same(trace, path)
    assert len(trace) == 0
    assert trace.window_start_ns < trace.window_end_ns


def test_facts_are_those_of_the_file(tmp_path: Path, join: Join) -> None:
    join(script=everything)
    with toyland.profile(BOTH, record_shapes=True) as prof:
        prof.add_metadata("who", "somebody")
        prof.add_metadata_json("list", "[1, {}]")
        torch.ones(2) + 1
    trace, file = devprof.torch.trace_of(prof), toyland.exported(prof, tmp_path)
    assert trace.facts["metadata"] == {"who": "somebody", "list": [1, {}]}
    assert trace.facts["trace_id"] == file["trace_id"]
    assert trace.facts["report"] == {key: value for key, value in file["devprof"].items() if key != "backends"}
    assert (trace.facts["host"], trace.facts["torch_version"]) == ("torch", torch.__version__)
    assert trace.facts["host_name"] == socket.gethostname()
    assert (trace.facts["record_shapes"], trace.facts["with_stack"]) == (True, False)


def test_records_that_another_backend_logged_by_value_are_there(program: Program) -> None:
    """Kineto keeps copies of those."""
    said = program("""
        import toyland, torch, devprof.torch
        from pathlib import Path
        from kineto_file import shown_by_file, shown_by_trace
        toyland.backend()
        other = toyland.other_backend()
        other.other_register()
        devprof.torch.install()
        with toyland.profile() as prof:
            torch.ones(2) + 1
        trace = devprof.torch.trace_of(prof)
        prof.export_chrome_trace("t.json")
        same = shown_by_trace(trace) == shown_by_file(Path("t.json"))
        (kernel,) = trace.named("another backend's")
        toyland.say(same=same, device=trace.places[trace.place[kernel]].id, on_device=bool(trace.on_device[kernel]))
    """)
    assert (said["same"], said["device"], said["on_device"]) == (True, 40, True)
