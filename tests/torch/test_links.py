"""How device work hangs on ops: ownership, sums, arrows, user ranges on devices.

torch owns a device record by its link, and the sums of a table follow; counting a record twice is the usual mistake of a
profiler backend, so most tests here compare sums.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from torch.autograd import DeviceType
from torch.profiler import record_function
from toyland import Deliver, Join, Runtime, kernel, profile

import devprof
from devprof.model import ActivityType, Flow, GenericTraceActivity
from devprof.torch.verify import load_strict, verify

WORK_US = 0.1


def owners(prof: Any) -> list[tuple[str, list[str]]]:
    """Return (op, names of its kernels) for every op that owns any."""
    return [(event.name, sorted(one.name for one in event.kernels)) for event in prof.events() if event.kernels]


def footer_us(prof: Any) -> float:
    """Return the sum that the table's last line shows."""
    words = f"Self {toyland.backend().upper()} time total"
    (line,) = [line for line in prof.key_averages().table().splitlines() if line.startswith(words)]
    number, unit = line.split(": ")[1][:-2], line[-2:]
    assert unit == "us"
    return float(number)


def arrows(trace: dict[str, Any]) -> Counter[str]:
    return Counter(event["ph"] for event in toyland.slices(trace, "ac2g"))


def test_work_belongs_to_the_op_that_launched_it_and_every_sum_agrees(deliver: Deliver, tmp_path: Path) -> None:
    runtime = Runtime()

    def body() -> None:
        for i in range(5):
            toyland.run_in_op(lambda i=i: runtime.launch(f"k{i}", stream=i % 2))

    session = deliver(runtime.script, body=body)
    assert owners(session.prof) == [("toy::run", [f"k{i}"]) for i in range(5)]
    checks = verify(session.prof, session.trace, devprof.report_of(session.prof))
    assert [check for check in checks if not check.passed] == []
    assert footer_us(session.prof) == pytest.approx(5 * WORK_US, abs=1e-3)
    (row,) = [row for row in session.prof.key_averages() if row.key == "toy::run"]
    assert (row.self_device_time_total, row.device_time_total) == (
        pytest.approx(5 * WORK_US),
        pytest.approx(5 * WORK_US),
    )
    assert session.ledger.clean
    assert session.warned == []


def test_a_launch_is_a_child_of_its_op_inside_its_interval_and_adds_no_device_time(deliver: Deliver) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(runtime.launch))
    (launch,) = [event for event in session.prof.events() if event.name == "launch k"]
    assert launch.cpu_parent.name == "toy::run"
    assert launch.device_type == DeviceType.CPU
    assert launch.thread == launch.cpu_parent.thread
    assert launch.cpu_parent.time_range.start <= launch.time_range.start
    assert launch.time_range.end <= launch.cpu_parent.time_range.end
    assert launch.device_time_total == 0
    assert launch.cpu_parent.device_time_total == pytest.approx(WORK_US)


def test_launches_do_not_change_any_device_sum(deliver: Deliver) -> None:
    with_launches, without = Runtime(), Runtime()
    sums = [
        deliver(
            runtime.script,
            body=lambda r=runtime, on=on: [toyland.run_in_op(lambda: r.launch(launches=on)) for _ in range(3)],
        )
        for runtime, on in ((with_launches, True), (without, False))
    ]
    (a, b) = [
        {row.key: row.self_device_time_total for row in session.prof.key_averages() if row.self_device_time_total}
        for session in sums
    ]
    assert a == {"toy::run": pytest.approx(3 * WORK_US), "k": pytest.approx(3 * WORK_US)}
    assert b == {key: pytest.approx(us) for key, us in a.items()}


@pytest.mark.parametrize("kind", [ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.PRIVATEUSE1_DRIVER])
@pytest.mark.parametrize("linked", [True, False])
def test_a_host_call_without_work_counts_nothing_whatever_its_ids(
    deliver: Deliver, kind: ActivityType, linked: bool
) -> None:
    """An unlinked host record inside an op would take over the op's id, and with it the op's kernels."""
    runtime = Runtime()

    def launch() -> None:
        runtime.launch()
        runtime.launch("query", works=0, **({} if linked else {"linked": 0, "id": 0}))
        op, _ = runtime.seen[-1]
        runtime.launch("other", works=0, id=op, linked=0)

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        records = runtime.script(start_ns, end_ns)
        for record in records:
            if record.activity_type is ActivityType.PRIVATEUSE1_RUNTIME:
                record.activity_type = kind
        return records

    session = deliver(script, body=lambda: toyland.run_in_op(launch))
    (op,) = [event for event in session.prof.events() if event.name == "toy::run"]
    assert op.device_time_total == pytest.approx(WORK_US)
    assert footer_us(session.prof) == pytest.approx(WORK_US, abs=1e-3)


def test_an_arrow_leaves_the_launch_and_arrives_at_the_work(deliver: Deliver) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(runtime.launch))
    start, finish = sorted(toyland.slices(session.trace, "ac2g"), key=lambda event: event["ph"], reverse=True)
    (launch,) = toyland.slices(session.trace, "privateuse1_runtime")
    (work,) = toyland.slices(session.trace, "kernel")
    assert (start["ph"], finish["ph"]) == ("s", "f")
    assert start["id"] == finish["id"]
    assert (start["pid"], start["tid"], start["ts"]) == (launch["pid"], launch["tid"], launch["ts"])
    assert (finish["pid"], finish["tid"], finish["ts"], finish["bp"]) == (work["pid"], work["tid"], work["ts"], "e")
    (op,) = [event for event in toyland.slices(session.trace, "cpu_op") if event["name"] == "toy::run"]
    assert launch["args"]["External id"] == work["args"]["External id"] == op["args"]["External id"]


@pytest.mark.parametrize("works", [2, 50])
def test_one_launch_may_have_many_works_and_one_arrow_to_each(deliver: Deliver, works: int) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(lambda: runtime.launch("g", works=works)))
    assert arrows(session.trace) == {"s": 1, "f": works}
    assert owners(session.prof) == [("toy::run", ["g"] * works)]
    assert footer_us(session.prof) == pytest.approx(works * WORK_US, abs=1e-3)
    assert all(check.passed for check in verify(session.prof, session.trace, devprof.report_of(session.prof)))


@pytest.mark.parametrize("bare", ["launch", "work"])
def test_an_id_that_one_side_of_a_launch_lacks_is_taken_from_the_other(deliver: Deliver, bare: str) -> None:
    runtime = Runtime()

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        records = runtime.script(start_ns, end_ns)
        for record in records:
            if (record.activity_type is ActivityType.PRIVATEUSE1_RUNTIME) == (bare == "launch"):
                record.linked = record.linked_user = 0
        return records

    def body() -> None:
        with record_function("range"):
            toyland.run_in_op(lambda: runtime.launch(works=2))

    session = deliver(script, body=body)
    assert owners(session.prof) == [("toy::run", ["k", "k"])]
    assert toyland.names(session.trace, "gpu_user_annotation") == ["range"]
    (launch,) = [event for event in session.prof.events() if event.name == "launch k"]
    assert launch.cpu_parent.name == "toy::run"


def test_work_launched_in_a_range_and_outside_any_op_belongs_to_nobody_and_is_still_summed(deliver: Deliver) -> None:
    runtime = Runtime()

    def body() -> None:
        with record_function("range"):
            runtime.launch()
            toyland.run_in_op(runtime.launch)

    session = deliver(runtime.script, body=body)
    assert owners(session.prof) == [("toy::run", ["k"])]
    assert footer_us(session.prof) == pytest.approx(2 * WORK_US, abs=1e-3)
    assert (session.ledger.device_work, session.ledger.linked, session.ledger.notes["unlinked"]) == (2, 1, 1)


def test_a_launch_without_work_and_work_without_a_launch_have_no_arrow(deliver: Deliver) -> None:
    runtime = Runtime()

    def launch() -> None:
        runtime.launch("nothing", works=0)
        runtime.launch("orphan", launches=False)

    session = deliver(runtime.script, body=lambda: toyland.run_in_op(launch))
    assert arrows(session.trace) == {}
    assert owners(session.prof) == [("toy::run", ["orphan"])]
    assert session.ledger.notes["device work without a launch"] == 1


@pytest.mark.parametrize("kind", [ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET, ActivityType.CONCURRENT_KERNEL])
def test_kernels_copies_and_sets_are_work_alike(deliver: Deliver, kind: ActivityType) -> None:
    runtime = Runtime()
    session = deliver(runtime.script, body=lambda: toyland.run_in_op(lambda: runtime.launch(work_type=kind)))
    assert owners(session.prof) == [("toy::run", ["k"])]
    assert [event["cat"] for event in toyland.slices(session.trace, kind.label)] == [kind.label]
    assert arrows(session.trace) == {"s": 1, "f": 1}


def test_a_wait_of_the_device_and_a_counter_add_no_time_to_an_op(
    deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVPROF_SYNC_EVENTS", "1")
    runtime = Runtime()

    def launch() -> None:
        runtime.launch()
        runtime.launch("use", work_type=ActivityType.MTIA_COUNTERS, launches=False, counter_values={"busy": 1.0})

    session = deliver(runtime.script, body=lambda: toyland.run_in_op(launch))
    assert owners(session.prof) == [("toy::run", ["k"])]
    (op,) = [event for event in session.prof.events() if event.name == "toy::run"]
    assert op.device_time_total == pytest.approx(WORK_US)


def test_a_user_range_is_one_span_per_device_and_stream_around_its_work(deliver: Deliver) -> None:
    runtime = Runtime()

    def body() -> None:
        with record_function("outer"):
            toyland.run_in_op(lambda: runtime.launch("a"))
            with record_function("inner"):
                toyland.run_in_op(lambda: runtime.launch("b"))
                toyland.run_in_op(lambda: runtime.launch("c", stream=1))
                toyland.run_in_op(lambda: runtime.launch("d", device=1))
            toyland.run_in_op(lambda: runtime.launch("e"))

    session = deliver(runtime.script, body=body)
    spans = Counter((e["name"], e["pid"], e["tid"]) for e in toyland.slices(session.trace, "gpu_user_annotation"))
    rows = [(0, 0), (0, 1), (1, 0)]
    assert spans == Counter([(name, *row) for name in ("outer", "inner") for row in rows])
    work = {event["name"]: event for event in toyland.slices(session.trace, "kernel")}
    outer, inner = (
        next(
            e
            for e in toyland.slices(session.trace, "gpu_user_annotation")
            if (e["name"], e["pid"], e["tid"]) == (name, 0, 0)
        )
        for name in ("outer", "inner")
    )
    # Kineto moves these spans a nanosecond ahead and makes them two longer
    slack = toyland.Decimal("0.002")
    assert abs(outer["ts"] - work["a"]["ts"]) <= slack
    assert abs(outer["ts"] + outer["dur"] - work["e"]["ts"] - work["e"]["dur"]) <= slack
    assert abs(inner["ts"] - work["b"]["ts"]) <= slack
    assert outer["ts"] <= inner["ts"] <= inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


def test_user_ranges_on_devices_are_not_counted_as_work(deliver: Deliver) -> None:
    runtime = Runtime()

    def body() -> None:
        with record_function("range"):
            for _ in range(3):
                toyland.run_in_op(runtime.launch)

    session = deliver(runtime.script, body=body)
    assert footer_us(session.prof) == pytest.approx(3 * WORK_US, abs=1e-3)
    (host_range,) = [e for e in session.prof.events() if e.name == "range" and e.device_type == DeviceType.CPU]
    assert host_range.device_time_total == pytest.approx(3 * WORK_US)
    (span,) = toyland.slices(session.trace, "gpu_user_annotation")
    assert span["args"]["External id"] == next(
        e["args"]["External id"] for e in toyland.slices(session.trace, "user_annotation") if e["name"] == "range"
    )


@pytest.mark.parametrize("name", ["a\\b", "größe", "kernel", "Pi", "x" * 10_000])
def test_a_range_is_named_on_the_device_as_torch_names_it_on_the_host(deliver: Deliver, name: str) -> None:
    runtime = Runtime()

    def body() -> None:
        with record_function(name):
            toyland.run_in_op(runtime.launch)

    session = deliver(runtime.script, body=body)
    (host,) = toyland.names(session.trace, "user_annotation")
    assert toyland.names(session.trace, "gpu_user_annotation") == [host]


def test_steps_of_a_schedule_are_ranges_on_the_device_and_nothing_of_the_warmup_is_there(
    join: Join, tmp_path: Path
) -> None:
    runtime = Runtime()
    plugin = join(script=runtime.script)
    traces: list[dict[str, Any]] = []

    def ready(prof: Any) -> None:
        path = tmp_path / f"cycle {len(traces)}.json"
        prof.export_chrome_trace(str(path))
        traces.append(load_strict(path))

    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for step in range(8):
            toyland.run_in_op(lambda step=step: runtime.launch(f"step {step}"))
            prof.step()
    assert [toyland.names(trace, "kernel") for trace in traces] == [["step 2", "step 3"], ["step 6", "step 7"]]
    assert [sorted(toyland.names(trace, "gpu_user_annotation")) for trace in traces] == [
        ["ProfilerStep#2", "ProfilerStep#3"],
        ["ProfilerStep#6", "ProfilerStep#7"],
    ]
    assert len(plugin.sessions) == 2


def test_two_plugins_share_a_trace_without_sharing_rows_ids_or_sums(join: Join, tmp_path: Path) -> None:
    runtimes = [Runtime(), Runtime()]
    plugins = [join(script=runtime.script) for runtime in runtimes]

    def launch_on_both() -> None:
        for i, runtime in enumerate(runtimes):
            runtime.launch(f"k{i}", device=1)

    with profile() as prof, record_function("range"):
        for _ in range(3):
            toyland.run_in_op(launch_on_both)
    trace = toyland.exported(prof, tmp_path)
    assert owners(prof) == [("toy::run", ["k0", "k1"])] * 3
    assert Counter((event["name"], event["pid"]) for event in toyland.slices(trace, "kernel")) == {
        ("k0", 1): 3,
        ("k1", 101): 3,
    }
    rows = {
        event["pid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "process_name" and event["pid"] in (1, 101)
    }
    assert rows == {1: f"{plugins[0].label} 1", 101: f"{plugins[1].label} 1"}
    assert arrows(trace) == {"s": 6, "f": 6}
    assert len({event["id"] for event in toyland.slices(trace, "ac2g")}) == 6
    assert Counter(toyland.names(trace, "gpu_user_annotation")) == {"range": 2}
    report = devprof.report_of(prof)
    assert {name: ledger.emitted for name, ledger in report.ledgers.items()} == {plugin.label: 6 for plugin in plugins}
    assert report.clean
    assert footer_us(prof) == pytest.approx(6 * WORK_US, abs=1e-3)


def test_a_plugin_with_very_many_devices_does_not_reach_into_the_next_ones_range(join: Join, tmp_path: Path) -> None:
    join(script=lambda start_ns, end_ns: [kernel("a", at=start_ns, device=150), kernel("a", at=start_ns, device=0)])
    join(script=lambda start_ns, end_ns: [kernel("b", at=start_ns, device=50)])
    with pytest.warns(devprof.errors.LossWarning, match="device records linked"), profile() as prof:
        pass
    devices = {(event["name"], event["pid"]) for event in toyland.slices(toyland.exported(prof, tmp_path), "kernel")}
    assert devices == {("a", 0), ("a", 150), ("b", 250)}


def test_work_of_several_threads_belongs_to_the_ops_of_those_threads(join: Join) -> None:
    runtime = Runtime()
    join(script=runtime.script)

    def task(x: torch.Tensor) -> torch.Tensor:
        toyland.run_in_op(runtime.launch)
        return x

    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(experimental_config=config) as prof, ThreadPoolExecutor(4) as pool:
        list(pool.map(task, [torch.ones(1)] * 8))
    assert owners(prof) == [("toy::run", ["k"])] * 8
    ops, _ = zip(*runtime.seen, strict=True)
    assert len(set(ops)) == 8


def test_links_hold_with_shapes_stacks_memory_and_modules_on(deliver: Deliver) -> None:
    runtime = Runtime()
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"), True)
    session = deliver(
        runtime.script, body=lambda: [toyland.run_in_op(runtime.launch) for _ in range(3)], options=options
    )
    assert owners(session.prof) == [("toy::run", ["k"])] * 3
    assert footer_us(session.prof) == pytest.approx(3 * WORK_US, abs=1e-3)


def test_a_device_only_profile_lists_work_without_links(deliver: Deliver) -> None:
    runtime = Runtime()
    session = deliver(
        runtime.script, body=lambda: toyland.run_in_op(runtime.launch), options={"activities": [toyland.DEVICE]}
    )
    assert toyland.names(session.trace, "kernel") == ["k"]
    assert owners(session.prof) == []
    assert session.warned == []


def test_a_plugin_may_draw_its_own_arrows(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        launch = GenericTraceActivity(
            ActivityType.PRIVATEUSE1_RUNTIME, "launch", start_ns, start_ns + 5, id=1, flow=Flow(77, 2, True)
        )
        return [
            launch,
            kernel("one", at=start_ns + 10, flow=Flow(77, 2, False)),
            kernel("two", at=start_ns + 300, flow=Flow(77, 2, False)),
        ]

    session = deliver(script)
    ends = Counter((event["ph"], event["ts"]) for event in toyland.slices(session.trace, "ac2g"))
    assert Counter(kind for kind, _ in ends) == {"s": 1, "f": 2}


def test_work_that_seems_to_start_before_its_launch_is_marked_and_counted(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        return [
            GenericTraceActivity(ActivityType.PRIVATEUSE1_RUNTIME, "launch", start_ns + 500, start_ns + 600, id=1),
            kernel("early", at=start_ns, id=1),
        ]

    session = deliver(script)
    (work,) = toyland.slices(session.trace, "kernel")
    assert work["args"]["before its launch"] is True
    assert session.ledger.notes["device work before its launch"] == 1
