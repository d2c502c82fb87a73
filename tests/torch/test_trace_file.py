"""What the exported file and the result say about devices, streams, times and the plugin, and how long they live."""

from __future__ import annotations

import gc
import json
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import toyland
from toyland import Deliver, Join, Program, Runtime, kernel, profile

import devprof
import devprof.torch
from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from devprof.testing import ScriptedProfiler
from devprof.torch.bridge import bridge


def rows(trace: dict[str, Any], what: str, value: str) -> dict[tuple[Any, Any], Any]:
    """Return a fact about rows by (pid, tid), for device rows only."""
    return {
        (event["pid"], event["tid"]): event["args"][value]
        for event in trace["traceEvents"]
        if event["ph"] == "M" and event["name"] == what and event["pid"] not in ("Spans", os.getpid())
    }


def test_every_device_and_stream_has_the_name_and_place_that_the_plugin_gave_it(deliver: Deliver) -> None:
    session = deliver(
        lambda start_ns, end_ns: [kernel(at=start_ns, device=i % 3, resource=i) for i in range(6)],
        devices=[
            DeviceInfo(0, "First", label="the first one"),
            DeviceInfo(1, "Second", sort_index=7),
            DeviceInfo(2, "Third"),
        ],
        resources=[
            ResourceInfo(0, 0, "compute"),
            ResourceInfo(3, 0, "copy", sort_index=-1),
            ResourceInfo(9, 2, "idle"),
        ],
    )
    assert rows(session.trace, "process_name", "name") == {(0, 0): "First", (1, 0): "Second", (2, 0): "Third"}
    assert rows(session.trace, "process_labels", "labels")[0, 0] == "the first one"
    assert rows(session.trace, "process_sort_index", "sort_index") == {(0, 0): 5_000_000, (1, 0): 7, (2, 0): 5_000_002}
    assert rows(session.trace, "thread_name", "name") == {
        (0, 0): "compute",
        (0, 3): "copy",
        (1, 1): "stream 1",
        (1, 4): "stream 4",
        (2, 2): "stream 2",
        (2, 5): "stream 5",
        (2, 9): "idle",
    }
    assert rows(session.trace, "thread_sort_index", "sort_index")[0, 3] == -1


def test_devices_that_the_plugin_does_not_describe_are_named_after_it(deliver: Deliver) -> None:
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns, device=2, resource=5)])
    assert rows(session.trace, "process_name", "name") == {(2, 0): f"{session.ledger.plugin} 2"}
    assert rows(session.trace, "thread_name", "name") == {(2, 5): "stream 5"}


def test_a_session_without_records_leaves_no_rows_of_gpus_that_are_not_there(deliver: Deliver) -> None:
    session = deliver((), devices=[DeviceInfo(0, "idle device")])
    assert rows(session.trace, "process_name", "name") == {(0, 0): "idle device"}


def test_names_given_through_the_logger_count_as_well(join: Join, tmp_path: Path) -> None:
    def process_trace(logger: Any, get_linked_activity: Any, start_ns: int, end_ns: int) -> None:
        logger.handle_device_info(DeviceInfo(0, "by logger"))
        logger.handle_resource_info(ResourceInfo(4, 0, "queue"))
        logger.handle_activity(kernel(at=start_ns, resource=4))

    join(methods={"process_trace": process_trace})
    with pytest.warns(devprof.errors.LossWarning), profile() as prof:
        pass
    trace = toyland.exported(prof, tmp_path)
    assert rows(trace, "process_name", "name") == {(0, 0): "by logger"}
    assert rows(trace, "thread_name", "name") == {(0, 4): "queue"}


def test_device_properties_are_the_plugins_objects(deliver: Deliver) -> None:
    properties = [{"id": 0, "name": 'q"', "bytes": 2**40, "ratio": 0.5, "flags": [True, None]}, {"id": 1}]
    session = deliver((), faults={"get_device_properties": lambda: properties})
    found = session.trace["deviceProperties"]
    found[0]["ratio"] = float(found[0]["ratio"])
    assert found == [{**properties[0], "name": "q'"}, {"id": 1}]


def test_properties_of_a_described_device_are_in_the_file_too(deliver: Deliver) -> None:
    session = deliver((), devices=[DeviceInfo(0, "Toy", properties={"cores": 4, "vendor": "toys"})])
    assert session.trace["deviceProperties"] == [{"id": 0, "name": "Toy", "cores": 4, "vendor": "toys"}]


def test_start_and_duration_of_every_record_are_exact_to_the_nanosecond(deliver: Deliver) -> None:
    given: list[tuple[int, int]] = []

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        given[:] = [(start_ns + i * 1009, i * 997) for i in range(1, 300)]
        return [kernel(at=at, ns=ns) for at, ns in given if at <= end_ns]

    session = deliver(script, body=lambda: [torch.ones(50) + 1 for _ in range(50)])
    shown = [
        (toyland.absolute_ns(session.trace, event), int(event["dur"] * 1000))
        for event in toyland.slices(session.trace, "kernel")
    ]
    assert shown
    assert sorted(shown) == sorted(given)[: len(shown)]


def test_the_rows_of_spans_name_the_plugins_and_count_their_records(deliver: Deliver) -> None:
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns + i) for i in range(7)])
    spans = [event for event in session.trace["traceEvents"] if event.get("cat") == "Trace"]
    (ours,) = [event for event in spans if session.ledger.plugin in event["name"]]
    assert ours["args"]["Op count"] == 7


def test_records_keep_their_order_and_texts_over_many_batches(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[ActivityBatch]:
        for b in range(20):
            yield ActivityBatch.from_columns(
                [f"b{b}", f"c{b}"],
                activity_type=5,
                name=np.arange(10) % 2,
                start=np.arange(start_ns + 10 * b, start_ns + 10 * b + 10),
                end=np.arange(start_ns + 10 * b, start_ns + 10 * b + 10) + 3,
            )

    session = deliver(script)
    assert toyland.names(session.trace, "kernel") == [f"{'bc'[i % 2]}{b}" for b in range(20) for i in range(10)]


def test_torchs_own_writer_in_python_gives_a_file_that_parses_too(deliver: Deliver, tmp_path: Path) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(lambda: runtime.launch('say "hi" é')))
    path = tmp_path / "python.json"
    session.prof.profiler.export_chrome_trace(str(path), use_python_export=True)
    trace = json.loads(path.read_text())
    assert [event["name"] for event in trace["traceEvents"] if event.get("cat") == "kernel"] == ["say 'hi' %C3%A9"]


def ten_launches(plugin: ScriptedProfiler) -> Any:
    runtime = Runtime()
    plugin.script = runtime.script
    with profile() as prof:
        for _ in range(10):
            toyland.run_in_op(lambda: runtime.launch("k", metadata={"text": "x" * 100}))
    return prof


def test_the_result_outlives_the_plugin_and_everything_of_devprofs(join: Join, tmp_path: Path) -> None:
    plugin = join()
    prof = ten_launches(plugin)
    sessions = [weakref.ref(session) for session in plugin.sessions]
    plugin.sessions.clear()
    plugin.script = lambda start_ns, end_ns: ()
    with profile():
        pass
    plugin.sessions.clear()
    gc.collect()
    assert [ref() for ref in sessions] == [None]
    assert sum(event.name == "k" for event in prof.events()) == 10
    trace = toyland.exported(prof, tmp_path)
    assert [event["args"]["text"] for event in toyland.slices(trace, "kernel")] == ["x" * 100] * 10
    assert "toy::run" in prof.key_averages().table()


def test_a_result_may_be_freed_while_another_session_records(join: Join) -> None:
    runtime = Runtime()
    join(script=runtime.script)
    kept = []
    for _ in range(2):
        with profile() as prof:
            toyland.run_in_op(runtime.launch)
            kept.clear()
            gc.collect()
        kept.append(prof)
    assert [event.name for event in kept[0].events() if event.name == "k"] == ["k"]


def test_the_report_belongs_to_the_latest_cycle_of_a_profile_and_goes_with_it(join: Join) -> None:
    runtime = Runtime()
    join(script=runtime.script)
    prof = profile()
    with pytest.raises(UsageError, match="has not finished"):
        devprof.report_of(prof)
    reports = []
    for n in (1, 2):
        prof.start()
        for _ in range(n):
            toyland.run_in_op(runtime.launch)
        prof.stop()
        reports.append(devprof.report_of(prof))
        assert devprof.last_report() is reports[-1]
        assert devprof.report_of(prof.profiler) is reports[-1]
    assert [next(iter(report.ledgers.values())).emitted for report in reports] == [2, 4]
    gone = weakref.ref(prof.profiler)
    del prof
    gc.collect()
    assert gone() is None
    with pytest.raises(UsageError, match="no devprof report belongs to this str"):
        devprof.report_of("a text")


def test_metadata_of_the_users_own_stays_beside_ours(join: Join, tmp_path: Path) -> None:
    join(metadata={"plugin's": 1})
    with profile() as prof:
        prof.add_metadata("mine", "yes")
        prof.add_metadata_json("more", '{"a": [1]}')
    trace = toyland.exported(prof, tmp_path)
    assert (trace["mine"], trace["more"], trace["plugin's"]) == ("yes", {"a": [1]}, 1)


def test_two_plugins_with_one_metadata_key_are_both_heard(join: Join, tmp_path: Path) -> None:
    first, second = join(metadata={"driver": "1.0"}), join(metadata={"driver": "2.0"})
    with profile() as prof:
        pass
    trace = toyland.exported(prof, tmp_path)
    assert (trace["driver"], trace[f"driver ({second.label})"]) == ("1.0", "2.0")
    assert f"driver ({first.label})" not in trace


def test_a_host_call_with_a_strange_thread_id_has_a_row(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        for i, thread in enumerate((0, -1, 2**31, 2**63 - 1, -(2**63))):
            kind = ActivityType.PRIVATEUSE1_RUNTIME if i % 2 else ActivityType.OVERHEAD
            yield GenericTraceActivity(kind, "call", start_ns + i, start_ns + i, thread_id=thread)

    session = deliver(script)
    assert len(toyland.slices(session.trace, "privateuse1_runtime", "overhead")) == 5
    assert session.ledger.emitted == 5


def test_nothing_is_left_of_a_capture_once_its_result_is_gone(join: Join) -> None:
    runtime = Runtime()
    join(script=runtime.script)
    for _ in range(3):
        with profile():
            toyland.run_in_op(runtime.launch)
    generation = bridge().lib.devprof_capture_new()
    try:
        assert all(bridge().replayed(older) is None for older in range(generation))
    finally:
        bridge().lib.devprof_capture_drop(generation)


@pytest.mark.parametrize("order", ["other backend first", "devprof first"])
def test_another_backends_profiler_beside_ours_keeps_its_slot_and_its_records(program: Program, order: str) -> None:
    facts = program(
        f"""
        import ctypes, pathlib, sys
        import toyland, torch, devprof
        other = toyland.other_backend()
        plugin = toyland.scripted(script=lambda start_ns, end_ns: [toyland.kernel("ours", at=start_ns)])
        with toyland.alone(plugin):
            if {order == "other backend first"}:
                other.other_register()
                factory_before = bool(other.other_has_factory())
            else:
                with toyland.profile():
                    pass
                other.other_register()
                factory_before = True
            counts = (ctypes.c_int * 4)()
            other.other_counts(counts)
            before = list(counts)
            with toyland.profile() as prof:
                torch.ones(2) + 1
            other.other_counts(counts)
            trace = toyland.exported(prof, pathlib.Path("."))
            toyland.say(
                factory=[factory_before, bool(other.other_has_factory())],
                calls=[after - b for after, b in zip(counts, before)],
                kernels=sorted(toyland.names(trace, "kernel")),
                clean=[l.emitted for l in devprof.report_of(prof).ledgers.values()],
            )
        """,
        timeout_s=120,
    )
    assert facts["factory"] == [True, True]
    assert facts["calls"] == [1, 1, 1, 1]
    assert facts["kernels"] == ["another backend's", "ours"]
    assert facts["clean"] == [1]


def test_a_plugin_is_told_the_trace_id_that_stands_in_the_file(join: Join, tmp_path: Path) -> None:
    """So that a vendor's own log of the capture can be found again."""
    plugin = join()
    with toyland.profile() as prof:
        torch.ones(2).neg()
    assert plugin.sessions[-1].config.trace_id == toyland.exported(prof, tmp_path)["trace_id"] != ""
