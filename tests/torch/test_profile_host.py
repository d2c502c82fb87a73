"""`devprof.profile(host="torch")`: torch.profiler underneath, one front door."""

from __future__ import annotations

import gc
import gzip
import json
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity

import devprof
from devprof.errors import SessionError, UsageError
from devprof.model import ActivityType


def ops() -> None:
    x = torch.ones(8, 8)
    (x @ x).relu_()


def names(prof: Any) -> list[str]:
    return [event.name for event in prof.events()]


def test_torch_records_the_ops_and_devprof_answers() -> None:
    with devprof.profile(activities=["cpu"], host="torch", record_shapes=True) as prof:
        ops()
    assert {"aten::matmul", "aten::mm", "aten::relu_"} <= set(names(prof))
    theirs = {row.key: row.count for row in prof.torch_profile.key_averages()}
    assert {row.key: row.count for row in prof.key_averages()} == theirs
    assert prof.trace.facts["host"] == "torch"
    assert prof.trace.facts["trace_id"] == prof.trace_id
    assert prof.stats.number_of_events == len(prof.trace)


def test_a_profile_that_is_made_and_never_started_may_be_stepped_as_torchs_may() -> None:
    loops = [
        devprof.profile(activities=["cpu"], host="torch"),
        torch.profiler.profile(activities=[ProfilerActivity.CPU]),
    ]
    for prof in loops:
        for _ in range(3):
            ops()
            prof.step()
    ours, theirs = loops
    assert (ours.step_num, ours.current_action.name) == (theirs.step_num, theirs.current_action.name) == (3, "RECORD")


def test_the_events_export_the_stacks_that_torchs_events_do(tmp_path: Path) -> None:
    with devprof.profile(activities=["cpu"], host="torch", with_stack=True) as prof:
        ops()
    prof.events().export_stacks(str(tmp_path / "events"), "self_cpu_time_total")
    prof.export_stacks(str(tmp_path / "profile"))
    lines = (tmp_path / "events").read_text(encoding="utf-8")
    assert "ops" in lines
    assert lines == (tmp_path / "profile").read_text(encoding="utf-8")


def test_auto_is_torch_where_torch_is_imported() -> None:
    with devprof.profile(activities=[ProfilerActivity.CPU]) as prof:
        ops()
    assert prof.torch_profile is not None
    assert "aten::mm" in names(prof)


def test_a_range_of_devprofs_is_in_torchs_trace_around_the_ops_in_it(tmp_path: Path) -> None:
    with devprof.profile(activities=["cpu"], host="torch") as prof, devprof.record_function("mine"):
        ops()
    trace = prof.trace
    (mine,) = trace.named("mine")
    (matmul,) = trace.named("aten::matmul")
    assert trace.activity_type[mine] == ActivityType.USER_ANNOTATION
    assert trace.parent[matmul] == mine
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [event["cat"] for event in events if event.get("name") == "mine"] == ["user_annotation"]


def test_a_frameworks_op_of_devprofs_is_an_op_in_torchs_trace() -> None:
    with devprof.profile(activities=["cpu"], host="torch") as prof, devprof.RecordFunction("mylib::op"):
        pass
    (op,) = prof.trace.named("mylib::op")
    assert prof.trace.activity_type[op] == ActivityType.CPU_OP


def test_outside_of_the_recording_ranges_go_nowhere() -> None:
    prof = devprof.profile(activities=["cpu"], host="torch", schedule=devprof.schedule(wait=1, warmup=1, active=1))
    with prof:
        for step in range(3):
            with devprof.record_function(f"range {step}"):
                pass
            if step < 2:
                prof.step()
    assert [name for name in names(prof) if name.startswith("range")] == ["range 2"]


def test_a_schedule_gives_a_trace_per_cycle_with_its_steps() -> None:
    seen: list[list[str]] = []

    def ready(prof: Any) -> None:
        seen.append([event.trace_name for event in prof.events() if event.trace_name.startswith("ProfilerStep")])

    plan = devprof.schedule(wait=0, warmup=1, active=2, repeat=2)
    with devprof.profile(activities=["cpu"], host="torch", schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(6):
            ops()
            prof.step()
    assert seen == [["ProfilerStep#1", "ProfilerStep#2"], ["ProfilerStep#4", "ProfilerStep#5"]]


def test_with_acc_events_figures_are_over_all_cycles() -> None:
    plan = devprof.schedule(wait=0, warmup=1, active=1, repeat=3)
    with devprof.profile(activities=["cpu"], host="torch", schedule=plan, acc_events=True) as prof:
        for _ in range(6):
            ops()
            prof.step()
    assert names(prof).count("aten::mm") == 3
    assert prof.trace.named("aten::mm").size == 1


def test_between_two_cycles_the_latest_trace_can_still_be_asked_for_and_exported(tmp_path: Path) -> None:
    plan = devprof.schedule(wait=0, warmup=1, active=1)
    with devprof.profile(activities=["cpu"], host="torch", schedule=plan) as prof:
        ops()
        prof.step()
        ops()
        prof.step()  # the first cycle is over, and torch prepares the second
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        assert names(prof).count("aten::mm") == 1
    text = (tmp_path / "trace.json").read_text(encoding="utf-8")
    assert sum(event.get("name") == "aten::mm" for event in json.loads(text)["traceEvents"]) == 1


def test_start_and_stop_on_two_threads_are_refused_and_the_right_thread_can_still_stop() -> None:
    prof = devprof.profile(activities=["cpu"], host="torch")
    prof.start()
    ops()
    refused: list[str] = []

    def elsewhere() -> None:
        for call in (prof.step, prof.stop):
            with pytest.raises(SessionError) as error:
                call()
            refused.append(str(error.value))

    thread = threading.Thread(target=elsewhere, name="elsewhere")
    thread.start()
    thread.join()
    prof.stop()
    assert [text.partition(",")[0] for text in refused] == [
        "step() on thread 'elsewhere'",
        "stop() on thread 'elsewhere'",
    ]
    assert "aten::mm" in names(prof)


@pytest.mark.parametrize("inner", ["torch", "python"])
@pytest.mark.parametrize("outer", ["torch", "python"])
def test_one_front_door_profile_at_a_time_whatever_the_hosts(outer: str, inner: str) -> None:
    second = devprof.profile(activities=["cpu"], host=inner)
    with devprof.profile(activities=["cpu"], host=outer) as prof, pytest.raises(SessionError, match="started at"):
        second.start()
    assert len(prof.trace) == 0


def test_a_profile_of_torchs_own_that_records_is_not_disturbed() -> None:
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as theirs:
        with pytest.raises(SessionError, match="a profile of torch's own is recording"):
            devprof.profile(activities=["cpu"], host="torch").start()
        ops()
    assert "aten::mm" in [event.name for event in theirs.events()]


def test_metadata_is_in_torchs_file(tmp_path: Path) -> None:
    prof = devprof.profile(activities=["cpu"], host="torch")
    prof.add_metadata_json("early", "[1]")
    with prof:
        ops()
        prof.add_metadata("during", "words")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    found = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert (found["early"], found["during"]) == ([1], "words")
    facts = prof.trace.facts["metadata"]
    assert isinstance(facts, dict)
    assert (facts["early"], facts["during"]) == ([1], "words")


def test_a_cpu_profile_has_no_report() -> None:
    with devprof.profile(activities=["cpu"], host="torch") as prof:
        ops()
    with pytest.raises(UsageError, match="there is no report"):
        _ = prof.report


@pytest.mark.skipif(torch.cuda.is_available(), reason="this torch records CUDA")
def test_groups_that_this_torch_does_not_record_are_refused_unless_there_is_another() -> None:
    with pytest.raises(UsageError, match=r"does not record 'cuda'; it records 'cpu'.*host='python'"):
        devprof.profile(activities=["cuda"], host="torch").start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, that CUDA is not there
        with devprof.profile(activities=["cpu", "cuda"], host="torch") as prof:
            torch.ones(2)
    assert "aten::ones" in {one.key for one in prof.key_averages()}


def test_what_torch_does_not_know_is_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"no plugin records 'npu'; torch's own activities are 'cpu'"):
        devprof.profile(activities=["npu"], host="torch")


def test_torchs_own_options_reach_torch_and_nobody_else() -> None:
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    with devprof.profile(activities=["cpu"], host="torch", experimental_config=config) as prof:
        ops()
    assert prof.torch_profile.experimental_config is config
    with pytest.raises(UsageError, match="experimental_config: only torch's profiler knows that"):
        devprof.profile(activities=["cpu"], host="python", experimental_config=config)


def test_a_toggle_pauses_torchs_ops() -> None:
    with devprof.profile(activities=["cpu"], host="torch") as prof:
        prof.toggle_collection_dynamic(False, ["cpu"])
        torch.ones(3).cos_()
        prof.toggle_collection_dynamic(True, ["cpu"])
        torch.ones(3).sin_()
    assert [name for name in names(prof) if name in ("aten::cos_", "aten::sin_")] == ["aten::sin_"]


def test_a_profile_that_is_dropped_leaves_torch_at_rest() -> None:
    devprof.profile(activities=["cpu"], host="torch").start()
    gc.collect()
    assert not torch.autograd.profiler._is_profiler_enabled
    with devprof.profile(activities=["cpu"], host="torch") as prof:
        ops()
    assert "aten::mm" in names(prof)


def test_both_hosts_one_after_the_other_in_one_process() -> None:
    for host, expected in (("torch", True), ("python", False), ("torch", True)):
        with devprof.profile(activities=["cpu"], host=host) as prof, devprof.record_function("mine"):
            ops()
        assert ("aten::mm" in names(prof), names(prof).count("mine")) == (expected, 1)


@pytest.mark.parametrize("use_gzip", [False, True])
def test_the_handler_writes_the_files_of_both_profilers(tmp_path: Path, use_gzip: bool) -> None:
    handler = devprof.tensorboard_trace_handler(tmp_path, "worker", use_gzip=use_gzip)
    with devprof.profile(activities=["cpu"], host="torch", on_trace_ready=handler):
        ops()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], on_trace_ready=handler):
        ops()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    for file in files:
        text = gzip.decompress(file.read_bytes()) if use_gzip else file.read_bytes()
        assert "aten::mm" in {event.get("name") for event in json.loads(text)["traceEvents"]}


def test_the_profilers_own_timings_are_there_as_soon_as_it_has_stopped_and_are_of_their_cycle() -> None:
    in_callback: list[int] = []
    plan = devprof.schedule(wait=0, warmup=1, active=1, repeat=2)
    with devprof.profile(
        activities=["cpu"],
        host="torch",
        schedule=plan,
        on_trace_ready=lambda prof: in_callback.append(prof.stats.number_of_events),
    ) as prof:
        for number in range(4):
            for _ in range(1 + number):
                ops()
            prof.step()
    assert in_callback[0] < in_callback[1] == prof.stats.number_of_events == len(prof.trace)
    with devprof.profile(activities=["cpu"], host="torch") as prof:
        ops()
    stats = prof.stats
    assert stats.number_of_events == len(prof.trace) > 0
    assert stats.window_ns == prof.trace.window_end_ns - prof.trace.window_start_ns
    assert min(stats.prepare_ns, stats.enable_ns, stats.disable_ns, stats.parse_ns, stats.window_ns) > 0


def test_steps_are_counted_where_torchs_optimizers_count_theirs() -> None:
    tracker = torch.autograd.profiler.KinetoStepTracker
    before = tracker.current_step()
    with devprof.profile(activities=["cpu"], host="torch", schedule=lambda step: devprof.ProfilerAction.NONE) as prof:
        tracker.init_step_count("Optimizer")
        for _ in range(3):
            tracker.increment_step("Optimizer")
            prof.step()
        assert tracker.current_step() == before + 3
    assert not tracker.erase_step_count("ProfilerStep"), "a profile that has stopped counts no more"
    tracker.erase_step_count("Optimizer")
