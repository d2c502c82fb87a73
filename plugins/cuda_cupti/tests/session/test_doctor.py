"""`devprof doctor` says what there is of CUDA, and what is in the way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from cuda_cupti import capture, coexistence, doctor, plugin, profiler
from cuda_cupti.capture import Client
from cuda_cupti.errors import CudaUnavailableError, CuptiError, NoDriverError, NothingToTraceError
from cuda_cupti.layouts import ActivityKind


@pytest.fixture
def here(client: Client, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for module in (doctor, profiler):
        monkeypatch.setattr(module, "open_cupti", lambda: client.access)
    monkeypatch.setattr(profiler, "_client", lambda access: client)
    monkeypatch.setattr(profiler, "_leave_at_exit", lambda client: None)
    monkeypatch.setattr(doctor, "packages", lambda: {"nvidia-cuda-cupti": "13.0.85"})
    monkeypatch.setattr(doctor, "restriction", lambda: False)
    for name in ("torch", "jax", "triton"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return monkeypatch


def test_a_machine_that_can_trace_is_described_in_full(here: pytest.MonkeyPatch) -> None:
    gpu = "Stand-in GPU, GPU-00000000-0000-0000-0000-000000000000"
    assert [line.removesuffix(doctor._WHERE) for line in plugin.devprof_doctor_lines()] == [
        "driver: supports CUDA 13.0",
        "libcupti: /stand-in/libcupti.so.13 (given by a test), CUDA 13.0 (CUPTI API 130001)",
        f"GPU 0: {gpu}",
        f"GPU 1: {gpu}",
        "tracing: ready",
        "NVIDIA packages: nvidia-cuda-cupti 13.0.85",
        "profiling by users other than the administrator: allowed",
    ]


@pytest.mark.parametrize(("bindings", "fits"), [("13.0.1", True), ("13.4.0", False)])
def test_bindings_of_another_release_than_the_library_are_named(
    here: pytest.MonkeyPatch, bindings: str, fits: bool
) -> None:
    here.setattr(doctor, "packages", lambda: {"cupti-python": bindings})
    said = [line for line in doctor.doctor_lines() if line.startswith(f"cupti-python {bindings} is not")]
    assert bool(said) is not fits


def test_another_subscriber_is_named_and_no_subscription_stays(here: pytest.MonkeyPatch, stand_in: Any) -> None:
    stand_in.subscriber = 1
    lines = list(doctor.doctor_lines())
    assert "tracing: ready" not in lines
    assert any("Another profiler holds CUPTI" in line for line in lines)
    stand_in.subscriber = 0
    assert "tracing: ready" in list(doctor.doctor_lines())
    assert stand_in.subscriber == 0


@pytest.mark.parametrize(
    ("fails", "code", "said"),
    [
        ("cuptiGetTimestamp", 15, "cuptiGetTimestamp answered 15"),
        ("cuptiGetThreadIdType", 999, "cuptiGetThreadIdType answered 999"),
        ("cuptiActivityRegisterCallbacks", 15, "cuptiActivityRegisterCallbacks answered 15"),
        (("cuptiActivityEnable", 10), 35, "NVreg_RestrictProfilingToAdminUsers=0"),
    ],
)
def test_what_would_stop_a_session_is_said_and_not_that_tracing_is_ready(
    here: pytest.MonkeyPatch, stand_in: Any, fails: Any, code: int, said: str
) -> None:
    stand_in.fail[fails] = code
    lines = list(doctor.doctor_lines())
    assert [line for line in lines if line.startswith("tracing")] == []
    (line,) = [line for line in lines if said in line]
    assert "; driver: supports" not in line  # the releases have lines of their own
    del stand_in.fail[fails]
    assert "tracing: ready" in list(doctor.doctor_lines())


def test_what_the_subscription_for_a_moment_finds_is_said(here: pytest.MonkeyPatch) -> None:
    def refused(cupti: object) -> None:
        raise CuptiError(35, "cuptiSubscribe")

    here.setattr(capture, "probe_subscription", refused)
    lines = list(doctor.doctor_lines())
    assert "tracing: ready" not in lines
    assert any(line.startswith("cuptiSubscribe answered 35") for line in lines)


def test_a_kind_that_cannot_be_recorded_is_said_beside_the_rest(here: pytest.MonkeyPatch, stand_in: Any) -> None:
    stand_in.fail["cuptiActivityEnable", int(ActivityKind.MEMSET)] = 27
    lines = list(doctor.doctor_lines())
    assert any(line.startswith("cuptiActivityEnable(MEMSET) answered 27") for line in lines)
    assert "tracing: ready, but for what is said above" in lines


def test_the_doctor_gives_everything_back(here: pytest.MonkeyPatch, client: Client, stand_in: Any) -> None:
    stand_in.thread_ids = 0
    assert "tracing: ready" in list(doctor.doctor_lines())
    assert stand_in.calls["cuptiActivityEnable"] > 0
    left = (stand_in.enabled, stand_in.subscriber, stand_in.thread_ids, stand_in.attributes[5])
    assert left == (set(), 0, 0, 0)
    client.take("another capture")  # nobody has it


def test_while_another_profiler_records_nothing_is_touched(here: pytest.MonkeyPatch, stand_in: Any) -> None:
    here.setattr(coexistence, "_OTHERS", {"a framework's profiler": lambda: True})
    stand_in.log.clear()
    lines = list(doctor.doctor_lines())
    assert any(line.startswith("a framework's profiler records in this process now") for line in lines)
    assert [name for name, _ in stand_in.log if name.startswith("cupti")] == []


def test_while_a_capture_of_ours_records_the_doctor_leaves_it_alone(
    here: pytest.MonkeyPatch, client: Client, stand_in: Any
) -> None:
    capture = object()
    client.take(capture)
    stand_in.enabled = {ActivityKind.CONCURRENT_KERNEL}
    assert any("another capture of the plugin records" in line for line in doctor.doctor_lines())
    touched = ("cuptiActivityEnable", "cuptiActivityRegisterCallbacks", "cuptiSubscribe")
    assert [stand_in.calls[name] for name in touched] == [0, 0, 0]
    client.give_back(capture)


def test_without_a_driver_there_is_one_line(here: pytest.MonkeyPatch) -> None:
    error = NoDriverError("libcuda.so.1: file too short")

    def none() -> object:
        raise error

    here.setattr(doctor, "open_cupti", none)
    assert list(doctor.doctor_lines()) == [str(error)]


def test_a_driver_without_a_gpu_is_said_with_the_packages_there_are(here: pytest.MonkeyPatch) -> None:
    def none() -> object:
        raise NothingToTraceError("The driver shows no GPU.")

    here.setattr(doctor, "open_cupti", none)
    lines = list(doctor.doctor_lines())
    assert (lines[0], "NVIDIA packages: nvidia-cuda-cupti 13.0.85" in lines) == ("The driver shows no GPU.", True)


def test_what_is_in_the_way_is_said_with_the_packages_there_are(here: pytest.MonkeyPatch) -> None:
    def old() -> object:
        raise CudaUnavailableError("the driver is too old")

    here.setattr(doctor, "open_cupti", old)
    here.setattr(doctor, "loaded_copies", lambda: ["/x/libcupti.so.13"])
    assert list(doctor.doctor_lines())[:3] == [
        "the driver is too old",
        "libcupti loaded: /x/libcupti.so.13",
        "NVIDIA packages: nvidia-cuda-cupti 13.0.85",
    ]


@pytest.mark.parametrize(
    ("text", "expected"), [("RmProfilingAdminOnly: 1\n", True), ("A: 1\nRmProfilingAdminOnly: 0", False), ("", None)]
)
def test_the_drivers_restriction_is_read_where_it_is_said(tmp_path: Path, text: str, expected: bool | None) -> None:
    path = tmp_path / "params"
    path.write_text(text)
    assert doctor.restriction(path) is expected
    assert doctor.restriction(tmp_path / "none") is None
