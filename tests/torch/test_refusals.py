"""Which profiles are refused before torch crashes, what still holds afterwards, and what is left alone.

torch 2.13 crashes on nested and concurrent profiles, and where a profile is stopped on another thread than the one that
started it. Where a devprof plugin takes part those are refused; everything else reaches torch untouched.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import toyland
from torch.autograd import profiler as autograd_profiler
from torch.profiler import schedule
from toyland import BOTH, CPU, Join, Program, profile

import devprof
import devprof.torch
from devprof.errors import SessionError
from devprof.testing import ScriptedProfiler

Elsewhere = Callable[[Callable[[], Any]], Any]

SCHEDULE = schedule(wait=0, warmup=1, active=1)


def enabled() -> bool:
    """Say what torch's own flag says."""
    return bool(autograd_profiler._is_profiler_enabled)


@pytest.fixture
def plugin(join: Join) -> ScriptedProfiler:
    return join(script=lambda start_ns, end_ns: [toyland.kernel(at=start_ns)])


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """Run a function on one other thread and return its result or raise its exception."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda function: pool.submit(function).result(timeout=60)


def assert_whole(prof: Any, name: str = "aten::add") -> None:
    assert name in toyland.ops_of(prof)
    assert [event.name for event in prof.events() if event.name == "k"] == ["k"]


def assert_next_session_works(plugin: ScriptedProfiler) -> None:
    assert not enabled()
    with profile() as prof:
        torch.ones(2) + 1
    assert_whole(prof)
    assert plugin.sessions[-1].calls.count("process_trace") == 1
    assert not enabled()


def test_a_profile_nested_on_the_same_thread_is_refused_and_the_outer_one_is_whole(plugin: ScriptedProfiler) -> None:
    with profile() as outer:
        with pytest.raises(SessionError, match="already recording on this thread") as refused, profile():
            pass
        assert enabled()
        torch.ones(2) + 1
    assert isinstance(refused.value, RuntimeError)
    assert len(plugin.sessions) == 1
    assert_whole(outer)
    assert_next_session_works(plugin)


def test_a_profile_beside_one_on_another_thread_is_refused(plugin: ScriptedProfiler, elsewhere: Elsewhere) -> None:
    with profile() as outer:
        with pytest.raises(SessionError, match="already recording on another thread"):
            elsewhere(profile().start)
        assert enabled()
        torch.ones(2) + 1
    assert_whole(outer)
    assert_next_session_works(plugin)


@pytest.mark.parametrize(
    ("outer_kind", "inner_kind"), [([CPU], BOTH), (BOTH, [CPU])], ids=["device in host", "host in device"]
)
def test_a_host_only_profile_counts_where_the_other_one_has_a_plugin(
    plugin: ScriptedProfiler, outer_kind: Any, inner_kind: Any
) -> None:
    with profile(outer_kind) as outer:
        with pytest.raises(SessionError, match="already recording"), profile(inner_kind):
            pass
        assert enabled()
        torch.ones(2) + 1
    assert "aten::add" in toyland.ops_of(outer)
    assert_next_session_works(plugin)


def test_stopping_a_refused_profile_leaves_the_recording_one_alone(plugin: ScriptedProfiler) -> None:
    refused = profile()
    with profile() as outer:
        with pytest.raises(SessionError, match="already recording"):
            refused.start()
        with pytest.raises(SessionError, match="nothing to stop"):
            refused.stop()
        assert enabled()
        torch.ones(2) + 1
    assert_whole(outer)
    assert_next_session_works(plugin)


def test_a_refused_profile_can_be_used_once_the_other_one_has_stopped(plugin: ScriptedProfiler) -> None:
    again = profile()
    with profile(), pytest.raises(SessionError):
        again.start()
    with again:
        torch.ones(2) + 1
    assert_whole(again)


def test_a_profile_is_stopped_on_the_thread_that_started_it(plugin: ScriptedProfiler, elsewhere: Elsewhere) -> None:
    prof = profile()
    elsewhere(prof.start)
    with pytest.raises(SessionError, match=r"was started on thread \d+ and is stopped on thread \d+"):
        prof.stop()
    assert enabled()

    def end() -> None:
        torch.ones(2) + 1
        prof.stop()

    elsewhere(end)
    assert_whole(prof)
    assert_next_session_works(plugin)


def test_a_profile_that_is_not_the_recording_one_cannot_stop_it(plugin: ScriptedProfiler) -> None:
    other = profile()
    other.prepare_trace()
    prof = profile()
    prof.prepare_trace()
    prof.start_trace()
    with pytest.raises(SessionError):
        other.stop_trace()
    assert enabled()
    torch.ones(2) + 1
    prof.stop_trace()
    assert_whole(prof)


def test_starting_a_preparation_that_another_profile_took_over_is_refused(plugin: ScriptedProfiler) -> None:
    first = profile()
    first.prepare_trace()
    with profile() as second:
        torch.ones(2) + 1
    assert_whole(second)
    with pytest.raises(SessionError, match="another profile was prepared"):
        first.start_trace()
    assert not enabled()
    assert plugin.sessions[0].calls == ["stop"]
    assert_next_session_works(plugin)


def test_starting_a_cancelled_preparation_while_another_profile_records_leaves_that_one_whole(
    plugin: ScriptedProfiler,
) -> None:
    first = profile()
    first.prepare_trace()
    with profile() as second:
        with pytest.raises(SessionError, match="another profile was prepared"):
            first.start_trace()
        assert enabled()
        torch.ones(2) + 1
    assert_whole(second)
    assert_next_session_works(plugin)


def test_a_host_only_profile_that_cancels_a_device_profiles_warmup_is_told_apart(plugin: ScriptedProfiler) -> None:
    device = profile()
    device.prepare_trace()
    with profile([CPU]) as host:
        torch.ones(2) + 1
    assert "aten::add" in toyland.ops_of(host)
    with pytest.raises(SessionError, match="another profile was prepared"):
        device.start_trace()
    assert_next_session_works(plugin)


def test_an_abandoned_preparation_blocks_nobody(plugin: ScriptedProfiler) -> None:
    profile().prepare_trace()
    gc.collect()
    assert_next_session_works(plugin)
    assert plugin.sessions[0].calls == ["stop"]


def test_preparing_one_profile_twice_stops_the_first_preparations_plugins(plugin: ScriptedProfiler) -> None:
    inner = autograd_profiler.profile(use_device=toyland.backend(), use_kineto=True)
    inner._prepare_trace()
    inner._prepare_trace()
    inner._start_trace()
    torch.ones(2) + 1
    inner.__exit__(None, None, None)
    assert [session.calls[:2] for session in plugin.sessions] == [["stop"], ["start", "stop"]]
    assert "aten::add" in [event.name for event in inner.function_events]


def take_two_steps(prof: Any) -> None:
    for _ in range(2):
        torch.ones(2) + 1
        prof.step()


def test_leaving_a_schedule_through_an_exception_in_step_neither_crashes_nor_loses_the_finished_cycle(
    plugin: ScriptedProfiler,
) -> None:
    def broken(prof: Any) -> None:
        raise ZeroDivisionError

    prof = profile(schedule=SCHEDULE, on_trace_ready=broken)
    with pytest.raises(ZeroDivisionError), prof:
        take_two_steps(prof)
    assert_whole(prof)
    assert_next_session_works(plugin)


def test_stopping_twice_keeps_the_result(plugin: ScriptedProfiler) -> None:
    prof = profile()
    prof.start()
    torch.ones(2) + 1
    prof.stop()
    prof.stop()
    assert_whole(prof)
    assert_next_session_works(plugin)


def test_host_only_profiles_may_do_what_torch_lets_them(plugin: ScriptedProfiler) -> None:
    """Nested host-only profiles are torch's own business: the outer one comes out empty, and nothing is refused."""
    with profile([CPU]):
        inner = profile([CPU])
        inner.start()
        torch.ones(2) + 1
        inner.stop()
    assert "aten::add" in toyland.ops_of(inner)
    assert_next_session_works(plugin)


def test_a_disabled_profile_inside_a_device_profile_is_nothing(plugin: ScriptedProfiler) -> None:
    with profile() as prof, autograd_profiler.profile(enabled=False):
        torch.ones(2) + 1
    assert_whole(prof)


@pytest.mark.parametrize("annotate", [autograd_profiler.emit_nvtx, autograd_profiler.emit_itt])
def test_nvtx_and_itt_annotation_reach_torch(plugin: ScriptedProfiler, annotate: Any) -> None:
    def outcome() -> tuple[type, str] | None:
        try:
            with annotate():
                torch.ones(2) + 1
        except Exception as error:  # noqa: BLE001 - whatever torch raises is what counts
            return type(error), str(error)
        finally:
            autograd_profiler._set_is_profiler_enabled(False)
        return None

    wrapped = outcome()
    devprof.torch.uninstall()
    assert outcome() == wrapped
    devprof.torch.install()
    assert plugin.sessions == []
    assert_next_session_works(plugin)


NAMES = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")


def test_the_wrap_is_idempotent_and_is_taken_away_whole() -> None:
    devprof.torch.uninstall()
    torchs_own = [getattr(torch._C._autograd, name) for name in NAMES]
    assert [getattr(autograd_profiler, name) for name in NAMES] == torchs_own
    assert not devprof.torch.installed()
    devprof.torch.install()
    wrapped = [getattr(autograd_profiler, name) for name in NAMES]
    devprof.torch.install()
    assert [getattr(autograd_profiler, name) for name in NAMES] == wrapped
    assert devprof.torch.installed()
    assert not set(wrapped) & set(torchs_own)
    devprof.torch.uninstall()
    devprof.torch.uninstall()
    assert [getattr(autograd_profiler, name) for name in NAMES] == torchs_own


def test_the_wrap_is_not_taken_away_while_a_session_records(plugin: ScriptedProfiler) -> None:
    with profile() as prof:
        with pytest.raises(SessionError, match="recording"):
            devprof.torch.uninstall()
        torch.ones(2) + 1
    assert_whole(prof)


def test_without_the_wrap_no_plugin_is_asked(plugin: ScriptedProfiler) -> None:
    devprof.torch.uninstall()
    with profile() as prof:
        torch.ones(2) + 1
    assert "aten::add" in toyland.ops_of(prof)
    assert plugin.sessions == []


def test_devprof_disable_keeps_the_wrap_out(plugin: ScriptedProfiler, monkeypatch: pytest.MonkeyPatch) -> None:
    devprof.torch.uninstall()
    monkeypatch.setenv("DEVPROF_DISABLE", "1")
    devprof.torch.install()
    assert not devprof.torch.installed()


def test_a_profile_on_a_thread_of_its_own_works(plugin: ScriptedProfiler, elsewhere: Elsewhere) -> None:
    def run() -> Any:
        with profile() as prof:
            torch.ones(2) + 1
        return prof

    assert_whole(elsewhere(run))
    assert_next_session_works(plugin)


def test_threads_that_all_want_to_profile_get_one_session_each_or_a_refusal(plugin: ScriptedProfiler) -> None:
    """Whoever comes while another one records is refused; nobody's trace is mixed with another's, and nothing crashes."""
    barrier = threading.Barrier(4)

    def run(_: int) -> Any:
        barrier.wait(timeout=60)
        try:
            with profile() as prof:
                torch.ones(2) + 1
        except SessionError:
            return None
        return prof

    with ThreadPoolExecutor(4) as pool:
        profiles = [prof for prof in pool.map(run, range(4)) if prof is not None]
    assert profiles
    for prof in profiles:
        assert_whole(prof)
    assert_next_session_works(plugin)


def test_a_profile_dropped_while_it_records_blocks_nobody(program: Program) -> None:
    facts = program("""
        import gc
        import toyland, torch, devprof
        plugin = toyland.scripted(script=lambda start_ns, end_ns: [toyland.kernel(at=start_ns)])
        with toyland.alone(plugin):
            prof = toyland.profile()
            prof.start()
            del prof
            gc.collect()
            with toyland.profile() as prof:
                torch.ones(2) + 1
            toyland.say(ops=toyland.ops_of(prof), calls=[session.calls[:3] for session in plugin.sessions])
    """)
    assert "aten::add" in facts["ops"]
    assert facts["calls"][1] == ["start", "stop", "process_trace"]
