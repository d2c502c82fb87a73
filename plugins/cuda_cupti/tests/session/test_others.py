"""Other profilers in the process: who holds CUPTI is named, and nothing is taken from them."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from cuda_cupti import coexistence
from cuda_cupti.binding import Cupti
from cuda_cupti.errors import (
    CudaUnavailableError,
    CuptiError,
    advice_for,
)
from stand_in import StandIn


def _torch(*, cuda: str | None, records: bool) -> Any:
    """torch, whose own answer is for one thread only."""
    profiler = SimpleNamespace(_is_profiler_enabled=records)
    autograd = SimpleNamespace(_profiler_enabled=lambda: False, profiler=profiler)
    return SimpleNamespace(version=SimpleNamespace(cuda=cuda), autograd=autograd)


@pytest.mark.parametrize(
    ("cuda", "records", "host", "refused"),
    [
        ("13.0", False, "python", None),
        ("13.0", True, "python", "torch.profiler .Kineto. records in this process now"),
        ("13.0", False, "torch", "Kineto holds CUPTI in this session.*devprof.trace_of"),
        (None, False, "torch", None),
        (None, True, "python", None),
    ],
)
def test_the_plugin_steps_aside_for_kineto_and_only_then(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, records: bool, host: str, refused: str | None
) -> None:
    monkeypatch.setitem(sys.modules, "torch", _torch(cuda=cuda, records=records))
    if refused is None:
        coexistence.check_alone(host)
    else:
        with pytest.raises(CudaUnavailableError, match=refused):
            coexistence.check_alone(host)


def test_torchs_profiler_is_seen_from_the_thread_that_hooks_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    found = []

    def ask() -> None:
        thread = threading.Thread(target=lambda: found.append(coexistence.who_records()))
        thread.start()
        thread.join()

    ask()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        ask()
    ask()
    assert found == ["", "torch.profiler (Kineto)", ""]


@pytest.mark.parametrize(
    ("module", "state", "name"),
    [
        ("jax._src.profiler", {"_profile_state": SimpleNamespace(profile_session=object())}, "jax.profiler"),
        ("triton.profiler.flags", {"get_profiling_on": lambda: True}, "Triton's Proton"),
        ("triton.profiler.flags", {"flags": SimpleNamespace(profiling_on=True)}, "Triton's Proton"),
    ],
)
def test_other_frameworks_profilers_are_named(
    monkeypatch: pytest.MonkeyPatch, module: str, state: dict[str, Any], name: str
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**state))  # type: ignore[arg-type]
    with pytest.raises(CudaUnavailableError, match=name):
        coexistence.check_alone("python")


def test_a_framework_that_cannot_be_asked_does_not_stand_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(autograd=SimpleNamespace()))  # type: ignore[arg-type]
    coexistence.check_alone("python")


def test_a_subscriber_is_found_and_no_subscription_is_kept(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    cupti = Cupti(stand_in.functions)
    coexistence.probe_subscription(cupti)
    assert stand_in.subscriber == 0
    stand_in.subscriber = 1
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "libToolsInjection64.so")
    with pytest.raises(CudaUnavailableError, match=r"libToolsInjection64\.so .* Another profiler holds CUPTI"):
        coexistence.probe_subscription(cupti)
    assert stand_in.subscriber == 1


@pytest.mark.parametrize("code", [35, 999, 12345])
def test_any_other_answer_to_a_subscription_is_told(
    stand_in: StandIn, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    stand_in.fail["cuptiSubscribe"] = code
    with pytest.raises(CuptiError, match=f"cuptiSubscribe answered {code} ") as raised:
        coexistence.probe_subscription(Cupti(stand_in.functions))
    assert advice_for(code) in str(raised.value)


def test_a_subscription_that_cupti_does_not_take_back_is_devprofs_own_and_no_other_tools(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(coexistence, "_kept", [])
    cupti = Cupti(stand_in.functions)
    stand_in.fail["cuptiUnsubscribe"] = 999
    for _ in range(2):
        coexistence.probe_subscription(cupti)
    assert (stand_in.subscriber, stand_in.calls["cuptiSubscribe"]) == (1, 1)
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "CUPTI does not take back a subscription of a moment (cuptiUnsubscribe answered 999)"
    ]
    stand_in.fail.clear()
    coexistence.probe_subscription(cupti)
    assert (stand_in.subscriber, coexistence._kept) == (0, [])


def test_a_subscription_that_is_taken_back_at_the_second_time_is_no_matter(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    answers = iter([999])
    cupti = Cupti(
        {
            **stand_in.functions,
            "cuptiUnsubscribe": lambda handle: next(answers, 0) or stand_in._cuptiUnsubscribe(handle.value),
        }
    )
    coexistence.probe_subscription(cupti)
    assert (stand_in.subscriber, caplog.records) == (0, [])


def test_with_torch_in_the_process_nobody_subscribes(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", _torch(cuda="13.0", records=False))
    coexistence.probe_subscription(Cupti(stand_in.functions))
    assert stand_in.calls["cuptiSubscribe"] == 0
