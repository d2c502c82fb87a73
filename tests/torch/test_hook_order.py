"""Which hooks are called, how often and in which order, for every form of a torch profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from torch.profiler import schedule
from toyland import BOTH, CPU, DEVICE, Join, profile

import devprof
from devprof.errors import UsageError
from devprof.model import ActivityType
from devprof.testing import ScriptedProfiler
from devprof.torch import interpose

GETTERS = [
    "errors",
    "get_device_infos",
    "get_resource_infos",
    "get_device_properties",
    "get_metadata",
    "get_trace_buffer",
]
FULL = ["start", "stop", "process_trace", *GETTERS]


def work() -> None:
    torch.ones(3) + 1


def divide_by_zero() -> None:
    work()
    1 / 0  # noqa: B018


def calls(plugin: ScriptedProfiler) -> list[list[str]]:
    return [session.calls for session in plugin.sessions]


def test_a_plain_profile_makes_one_session_with_every_hook_once_in_kinetos_order(join: Join) -> None:
    plugin = join()
    with profile():
        assert calls(plugin) == [["start"]]
        work()
    assert calls(plugin) == [FULL]


def test_prepare_configures_and_start_starts(join: Join) -> None:
    plugin = join()
    prof = profile()
    prof.prepare_trace()
    assert calls(plugin) == [[]]
    prof.start_trace()
    assert calls(plugin) == [["start"]]
    prof.stop_trace()
    assert calls(plugin) == [FULL]


def test_a_schedule_makes_a_session_per_cycle_configured_at_the_end_of_its_wait(join: Join) -> None:
    plugin = join()
    seen: list[list[int]] = []
    ready: list[list[str]] = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: ready.append(calls(plugin)[-1][:]),
    ) as prof:
        for _ in range(9):
            seen.append([len(one) for one in calls(plugin)])
            work()
            prof.step()
    full = len(FULL)
    assert seen == [[], [0], [1], [1], [full], [full, 0], [full, 1], [full, 1], [full, full]]
    assert calls(plugin) == [FULL, FULL]
    assert ready == [FULL, FULL]


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_a_schedule_without_warmup_configures_and_starts_in_one_step(join: Join) -> None:
    plugin = join()
    with profile(schedule=schedule(wait=1, warmup=0, active=1, repeat=1)) as prof:
        assert calls(plugin) == []
        prof.step()
        assert calls(plugin) == [["start"]]
        prof.step()
        assert calls(plugin) == [FULL]


def test_leaving_during_the_warmup_gives_a_whole_session_with_a_tiny_window(join: Join) -> None:
    plugin = join()
    with profile(schedule=schedule(wait=0, warmup=2, active=1)) as prof:
        work()
    assert calls(plugin) == [FULL]
    assert devprof.report_of(prof).complete


def test_an_exception_in_the_block_reaches_the_user_and_the_trace_is_there(join: Join, tmp_path: Path) -> None:
    plugin = join()
    prof = profile()
    with pytest.raises(ZeroDivisionError), prof:
        divide_by_zero()
    assert calls(plugin) == [FULL]
    assert "aten::add" in toyland.names(toyland.exported(prof, tmp_path), "cpu_op")


def test_accumulated_events_keep_one_session_per_cycle(join: Join) -> None:
    plugin = join(script=lambda start_ns, end_ns: [toyland.kernel(at=start_ns)])
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=3), acc_events=True) as prof:
        for _ in range(6):
            work()
            prof.step()
    assert calls(plugin) == [FULL] * 3
    assert [event.name for event in prof.events() if event.name == "k"] == ["k"] * 3


def test_several_sessions_of_one_profile_object_are_independent(join: Join) -> None:
    plugin = join()
    prof = profile()
    for _ in range(2):
        prof.start()
        work()
        prof.stop()
    assert calls(plugin) == [FULL, FULL]


def test_a_device_only_profile_runs_every_hook(join: Join) -> None:
    plugin = join(script=lambda start_ns, end_ns: [toyland.kernel(at=start_ns)])
    with profile([DEVICE]) as prof:
        work()
    assert calls(plugin) == [FULL]
    assert [event.name for event in prof.events()] == ["k"]
    assert not devprof.report_of(prof).host_ops


def test_a_host_only_profile_asks_no_plugin_and_has_no_report(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = join()
    reached: list[str] = []
    originals = interpose._INTERPOSER.originals

    def noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: reached.append(name) or original(*args, **kwargs)

    for name in list(originals):
        monkeypatch.setitem(originals, name, noting(name, originals[name]))
    with profile([CPU]) as prof:
        work()
    assert reached == ["_prepare_profiler", "_enable_profiler", "_disable_profiler"]
    assert plugin.sessions == []
    with pytest.raises(UsageError, match="no devprof report belongs to this profile"):
        devprof.report_of(prof)


DEVICE_TYPES = {
    ActivityType.GPU_USER_ANNOTATION,
    ActivityType.GPU_MEMCPY,
    ActivityType.GPU_MEMSET,
    ActivityType.CONCURRENT_KERNEL,
    ActivityType.PRIVATEUSE1_RUNTIME,
    ActivityType.PRIVATEUSE1_DRIVER,
}
ALONGSIDE = {ActivityType.OVERHEAD, ActivityType.MTIA_COUNTERS}


@pytest.mark.parametrize("activities", [BOTH, [DEVICE]], ids=["host and device", "device"])
def test_the_kinds_asked_for_are_the_devices_kinds_and_those_torch_has_no_filter_for(
    join: Join, activities: Sequence[Any]
) -> None:
    plugin = join()
    with profile(activities):
        pass
    assert plugin.asked == [DEVICE_TYPES | ALONGSIDE]


def test_waits_of_the_device_are_asked_for_only_on_request(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = join()
    monkeypatch.setenv("DEVPROF_SYNC_EVENTS", "1")
    with profile():
        pass
    assert plugin.asked == [DEVICE_TYPES | ALONGSIDE | {ActivityType.CUDA_SYNC}]


def test_a_filter_names_the_only_kinds_asked_for(join: Join) -> None:
    plugin = join()
    with profile([CPU, {DEVICE: ["CONCURRENT_KERNEL", "GPU_MEMCPY"]}]):
        pass
    assert plugin.asked == [{ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY}]


def test_records_of_a_kind_that_the_filter_leaves_out_are_rejected_and_counted(join: Join) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[devprof.GenericTraceActivity]:
        yield toyland.kernel(at=start_ns)
        yield devprof.GenericTraceActivity(ActivityType.GPU_MEMCPY, "copy", start_ns, start_ns + 1)

    plugin = join(script=script)
    prof = profile([CPU, {DEVICE: ["CONCURRENT_KERNEL"]}])
    with pytest.warns(devprof.errors.LossWarning, match="activity type not requested: 1"), prof:
        pass
    assert [event.name for event in prof.events()] == ["k"]
    assert devprof.report_of(prof).ledgers[plugin.label].rejected == {"activity type not requested": 1}


def test_an_empty_filter_leaves_the_plugin_alone(join: Join) -> None:
    plugin = join()
    with profile([CPU, {DEVICE: []}]) as prof:
        work()
    assert plugin.asked == []
    assert "aten::add" in toyland.ops_of(prof)


def test_a_filter_that_torch_does_not_know_is_torchs_error_and_the_next_session_works(join: Join) -> None:
    plugin = join()
    with pytest.raises(RuntimeError, match="NONSENSE"), profile([CPU, {DEVICE: ["NONSENSE"]}]):
        pass
    with profile():
        work()
    assert calls(plugin)[-1] == FULL


def test_without_external_correlation_records_arrive_unlinked(join: Join) -> None:
    runtime = toyland.Runtime()
    plugin = join(script=runtime.script)
    config = torch._C._profiler._ExperimentalConfig(disable_external_correlation=True)
    prof = profile(experimental_config=config)
    with pytest.warns(devprof.errors.LossWarning, match="0 of 1 device records linked"), prof:
        toyland.run_in_op(runtime.launch)
    assert runtime.seen == [(0, 0)]
    assert [event.name for event in prof.events() if event.device_type == torch.autograd.DeviceType.PrivateUse1] == [
        "k"
    ]
    ledger = devprof.report_of(prof).ledgers[plugin.label]
    assert (ledger.device_work, ledger.linked) == (1, 0)


def test_what_the_profile_was_asked_for_reaches_the_plugins_configuration(join: Join) -> None:
    plugin = join()
    config = torch._C._profiler._ExperimentalConfig(custom_profiler_config='{"counters": [1, 2]}')
    options = {"record_shapes": True, "with_stack": True, "with_flops": True, "with_modules": True}
    with profile(profile_memory=True, experimental_config=config, **options):
        pass
    with profile():
        pass
    given, plain = (session.config for session in plugin.sessions)
    assert given.host == "torch"
    assert {name: getattr(given, name) for name in options} == options
    assert given.profile_memory
    assert given.custom == '{"counters": [1, 2]}'
    assert not any(getattr(plain, name) for name in (*options, "profile_memory", "custom"))
    assert given.correlation_api
    assert abs(given.now_ns() - plain.now_ns()) < 10**9


def test_the_window_given_to_a_plugin_holds_the_block(join: Join) -> None:
    window = []
    join(script=lambda start_ns, end_ns: window.append((start_ns, end_ns)) or ())
    with profile() as prof:
        first = toyland.time.time_ns()
        work()
        last = toyland.time.time_ns()
    ((start_ns, end_ns),) = window
    assert start_ns <= first <= last <= end_ns
    report = devprof.report_of(prof)
    assert (report.start_ns, report.end_ns) == (start_ns, end_ns)


def test_a_plugin_that_returns_no_session_sits_this_one_out(join: Join) -> None:
    sits_out, plays = join(faults={"configure": lambda: None}), join()
    with profile() as prof:
        work()
    assert sits_out.sessions == []
    assert calls(plays) == [FULL]
    assert devprof.report_of(prof).clean


def test_a_profile_in_which_every_plugin_sits_out_is_an_ordinary_profile(join: Join) -> None:
    join(faults={"configure": lambda: None})
    for _ in range(2):
        with profile() as prof:
            work()
        assert "aten::add" in toyland.ops_of(prof)
    assert devprof.report_of(prof).ledgers


def test_toggling_the_device_reaches_the_plugin_and_not_torch(join: Join, capfd: pytest.CaptureFixture[str]) -> None:
    plugin = join()
    with profile() as prof:
        prof.toggle_collection_dynamic(False, [DEVICE])
        work()
        prof.toggle_collection_dynamic(True, [DEVICE])
    assert calls(plugin) == [["start", "toggle_collection_dynamic off", "toggle_collection_dynamic on", *FULL[1:]]]
    assert "aten::add" in toyland.ops_of(prof)
    assert "only supported" not in capfd.readouterr().err


def test_toggling_the_host_reaches_torch_and_not_the_plugin(join: Join) -> None:
    plugin = join()
    with profile() as prof:
        prof.toggle_collection_dynamic(False, [CPU])
        torch.zeros(3)
        prof.toggle_collection_dynamic(True, [CPU])
        work()
    assert calls(plugin) == [FULL]
    assert "aten::zeros" not in toyland.ops_of(prof)
    assert "aten::add" in toyland.ops_of(prof)
