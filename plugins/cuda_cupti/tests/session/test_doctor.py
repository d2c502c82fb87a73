"""`devprof doctor` says what there is of CUDA, and what is in the way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from cuda_cupti import doctor, plugin
from cuda_cupti.errors import NO_DRIVER, CudaUnavailableError, NoDriverError


@pytest.fixture
def here(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(doctor, "open_cupti", stand_in.access)
    monkeypatch.setattr(doctor, "packages", lambda: {"nvidia-cuda-cupti": "13.0.85"})
    monkeypatch.setattr(doctor, "restriction", lambda: False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
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


def test_without_a_driver_there_is_one_line(here: pytest.MonkeyPatch) -> None:
    def none() -> object:
        raise NoDriverError

    here.setattr(doctor, "open_cupti", none)
    assert list(doctor.doctor_lines()) == [NO_DRIVER]


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
