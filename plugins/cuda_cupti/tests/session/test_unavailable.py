"""Where CUDA cannot be traced, one message says why and what to do, and nothing else suffers."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from cuda_cupti import access, discovery
from cuda_cupti.access import calibrated, open_cupti
from cuda_cupti.binding import Cupti
from cuda_cupti.discovery import Found
from cuda_cupti.driver import Driver
from cuda_cupti.errors import (
    CudaUnavailableError,
    CuptiError,
    NoDriverError,
    NoLibraryError,
    NothingToTraceError,
    advice_for,
)
from cuda_cupti.profiler import CudaProfiler
from stand_in import StandIn

from devprof.contract import SessionConfig

ROOT = Path(__file__).parents[4]


def _loader_says() -> str:
    """Return why the driver's library does not load here, empty where it does."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return str(error)
    return ""


NO_DRIVER = str(NoDriverError(_loader_says()))

without_driver = pytest.mark.skipif(not _loader_says(), reason="this machine has an NVIDIA driver")

_PROGRAM = """
import json, pathlib, sys, warnings
warnings.simplefilter("default")
from devprof.registry import discover, register
import cuda_cupti.plugin, devprof
if "cuda" not in [one.name for one in discover().profilers]:
    register(cuda_cupti.plugin, "cuda")
from openreg_sim.runtime import runtime
for _ in range(2):
    with devprof.profile(activities=json.loads(sys.argv[1]), host="python") as prof:
        with devprof.record_function("work"):
            runtime().launch("k", flops=1e6)
maps = pathlib.Path("/proc/self/maps").read_text()
print(json.dumps({"kernels": len(prof.trace.named("k")), "touched": "libcupti" in maps, "torch": "torch" in sys.modules,
                  "failures": prof.report.ledgers.get("cuda").failures if "cuda" in prof.report.ledgers else []}))
"""


def _profile(activities: list[str] | None) -> tuple[dict[str, Any], str]:
    paths = [str(ROOT), str(ROOT / "plugins/cuda_cupti"), str(ROOT / "plugins/openreg_sim")]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(activities)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@without_driver
def test_without_a_driver_one_warning_says_so_and_the_other_plugins_record_and_libcupti_is_not_touched() -> None:
    said, stderr = _profile(["cpu", "openreg", "cuda"])
    failure = f"plugin 'cuda', configure: NoDriverError: {NO_DRIVER}"
    assert said == {"kernels": 1, "touched": False, "torch": False, "failures": [failure]}
    assert stderr.count(NO_DRIVER) == 1


@without_driver
def test_where_nobody_asked_for_cuda_a_machine_without_it_is_no_matter() -> None:
    assert _profile(None) == ({"kernels": 1, "touched": False, "torch": False, "failures": []}, "")


def test_a_message_says_what_failed_what_it_means_and_survives_pickling() -> None:
    error = CuptiError(39, "cuptiSubscribe", "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")
    expected = (
        "cuptiSubscribe answered 39 (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED). Another profiler holds CUPTI"
    )
    assert str(error).startswith(expected)
    for one in (error, NoDriverError("libcuda.so.1: file too short")):
        assert str(pickle.loads(pickle.dumps(one))) == str(one)


def test_a_driver_that_does_not_load_is_told_in_the_loaders_words() -> None:
    assert "no NVIDIA driver here (libcuda.so.1: file too short)" in str(NoDriverError("libcuda.so.1: file too short"))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, "does not know this GPU"),
        (14, "subscriber API"),
        (15, "does not work with this driver"),
        (23, "Another profiler"),
        (27, "does not have the feature"),
        (33, "virtual GPU"),
        (35, "NVreg_RestrictProfilingToAdminUsers=0"),
        (39, "Another profiler"),
        (40, "virtual GPU"),
        (41, "confidential"),
        (42, "CMP"),
        (43, "MIG"),
        (44, "SLI"),
        (45, "WSL"),
        (999, "`nvidia-smi`"),
    ],
)
def test_every_result_that_a_user_can_do_something_about_says_what(code: int, words: str) -> None:
    assert words in advice_for(code)


def test_a_failure_without_a_reason_is_not_told_as_a_missing_driver() -> None:
    assert "no NVIDIA driver" not in advice_for(999)


def test_a_result_that_nobody_knows_is_still_a_message() -> None:
    assert str(CuptiError(12345, "cuptiX")) == "cuptiX answered 12345 (no name known)."


# -- opening it -------------------------------------------------------------------------------------------------------


@pytest.fixture
def opening(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setattr(access, "_open", access._open.__wrapped__)
    monkeypatch.setattr(access, "load_driver", lambda: Driver(stand_in.driver_functions))
    monkeypatch.setattr(access, "find_libcupti", lambda driver_major: Found("/x/libcupti.so.13", "a test"))
    monkeypatch.setattr(access, "functions_of", lambda library: stand_in.functions)
    monkeypatch.setattr(access, "loaded_copies", lambda: ["/x/libcupti.so.13"])
    monkeypatch.setattr(access.ctypes, "CDLL", lambda path: path)
    return stand_in


def test_opening_asks_the_driver_before_anything_of_cupti_is_called(opening: StandIn) -> None:
    opened = open_cupti()
    names = [name for name, _ in opening.log]
    assert names.index("cuInit") < names.index("cuptiGetVersion")
    assert (opened.cupti.version, sorted(opened.devices), opened.doubts) == (130001, [0, 1], ())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "before a fork"),
        (34, "stub, for linking only.*LD_LIBRARY_PATH"),
        (46, "nvidia-smi -q -d COMPUTE"),
        (100, "shows no GPU"),
        (101, "Compare CUDA_VISIBLE_DEVICES"),
        (304, "/dev/nvidia"),
        (500, "lacks functions.*Install the driver again"),
        (802, "fabric manager"),
        (803, "different releases"),
        (805, "MPS"),
        (999, "failed to start"),
        (12345, r"\(12345\)\. See that `nvidia-smi` works"),
    ],
)
def test_a_driver_that_does_not_start_is_the_cause_and_cupti_is_not_called(
    opening: StandIn, code: int, words: str
) -> None:
    opening.fail["cuInit"] = code
    with pytest.raises(CudaUnavailableError, match=words):
        open_cupti()
    assert [name for name, _ in opening.log if name.startswith("cupti")] == []


@pytest.mark.parametrize(
    ("how", "remedy"),
    [
        ("a wheel", r"the packages of CUDA 13 \(`pip install 'nvidia-cuda-cupti<14'`\)"),
        (discovery.LOADED, "of what has loaded that file the build for CUDA 13"),
        (discovery.PATH_VARIABLE, "name a libcupti of CUDA 13 in DEVPROF_LIBCUPTI"),
    ],
)
def test_a_driver_older_than_the_library_is_refused_before_it_is_called(
    opening: StandIn, monkeypatch: pytest.MonkeyPatch, how: str, remedy: str
) -> None:
    monkeypatch.setattr(access, "find_libcupti", lambda driver_major: Found("/x/libcupti.so.14", how))
    said = rf"too old for CUPTI 14 .* supports CUDA 13\.0\. Install a newer driver .*, or {remedy}\."
    with pytest.raises(CudaUnavailableError, match=said):
        open_cupti()
    assert [name for name, _ in opening.log if name.startswith("cupti")] == []


def _driver(version: int, start: int = 0) -> Driver:
    def say_version(found: Any) -> int:
        found._obj.value = version
        return 0

    return Driver({"cuDriverGetVersion": say_version, "cuInit": lambda flags: start})


def test_a_driver_of_cuda_11_is_told_to_be_renewed_and_no_package_is_advised(
    opening: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "load_driver", lambda: _driver(11040))
    with pytest.raises(CudaUnavailableError, match=r"supports CUDA 11\.4\. Install a newer driver") as raised:
        open_cupti()
    assert "nvidia-cuda-cupti" not in str(raised.value)


def test_the_library_is_looked_for_by_the_release_of_the_driver(
    opening: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(access, "load_driver", lambda: _driver(12080))
    monkeypatch.setattr(
        access, "find_libcupti", lambda major: asked.append(major) or Found("/x/libcupti.so.12", "a test")
    )
    open_cupti()
    assert asked == [12]


def test_a_driver_without_a_gpu_is_the_cause_also_where_it_is_too_old(
    opening: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "load_driver", lambda: _driver(12080, start=100))
    with pytest.raises(NothingToTraceError, match="shows no GPU"):
        open_cupti()


# -- who asked for it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "sits_out"),
    [
        (NoDriverError("not found"), True),
        (NothingToTraceError("no GPU"), True),
        (NoLibraryError("no libcupti"), True),
        (CudaUnavailableError("the driver is too old"), False),
        (CuptiError(999, "cuptiGetVersion"), False),
    ],
)
def test_the_plugin_sits_out_where_there_is_nothing_to_trace_and_nobody_named_it(
    error: Exception, sits_out: bool
) -> None:
    def fail() -> Any:
        raise error

    plugin = CudaProfiler(fail)
    with pytest.raises(type(error)):
        plugin.configure(plugin.available_activities(), SessionConfig(host="python", named=True))
    with nullcontext() if sits_out else pytest.raises(type(error)):
        assert plugin.configure(plugin.available_activities(), SessionConfig(host="python")) is None


def test_a_driver_without_libcupti_gets_one_word_and_a_machine_without_a_gpu_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors = iter([NoLibraryError("no libcupti, once"), NoLibraryError("no libcupti, once"), NoDriverError("none")])

    def fail() -> Any:
        raise next(errors)

    plugin = CudaProfiler(fail)
    for _ in range(3):
        plugin.configure(plugin.available_activities(), SessionConfig(host="python"))
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == ["no libcupti, once"]


# -- copies, and garbage ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("libcupti.so.13", b"no library", r"libcupti\.so\.13 \(DEVPROF_LIBCUPTI\) cannot be loaded"),
        ("libcupti.so.13", b"", r"cannot be loaded"),
        ("libcupti.so.14", b"", r"too old for CUPTI 14 .*it supports CUDA 13\.0.*name a libcupti of CUDA 13"),
        ("", None, r"libm\.so\.6 \(DEVPROF_LIBCUPTI\) is no libcupti"),
    ],
)
def test_garbage_for_a_library_is_refused_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stand_in: StandIn,
    name: str,
    content: bytes | None,
    said: str,
) -> None:
    path = tmp_path / name
    if content is None:
        ctypes.CDLL("libm.so.6")
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        path = next(Path(line.split()[-1]) for line in maps if line.endswith("libm.so.6"))
    else:
        path.write_bytes(content)
    monkeypatch.setattr(discovery, "loaded_copies", list)
    monkeypatch.setattr(access, "load_driver", lambda: Driver(stand_in.driver_functions))
    monkeypatch.setenv("DEVPROF_LIBCUPTI", str(path))
    access._open.cache_clear()
    with pytest.raises(CudaUnavailableError, match=said):
        open_cupti()


def test_a_second_copy_in_the_process_is_refused(opening: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "loaded_copies", lambda: ["/x/libcupti.so.13", "/y/libcupti.so.13"])
    with pytest.raises(CudaUnavailableError, match="two libcupti are loaded"):
        open_cupti()


def test_a_library_that_answers_nothing_says_what_it_answered(opening: StandIn) -> None:
    opening.fail["cuptiGetVersion"] = 999
    with pytest.raises(CuptiError, match="cuptiGetVersion answered 999"):
        open_cupti()


def test_a_library_older_than_cuda_12_8_is_refused() -> None:
    old = StandIn()
    old.version = 18
    with pytest.raises(CudaUnavailableError, match=r"older than CUDA 12\.8"):
        calibrated(Cupti(old.functions))


def test_lengths_are_believed_as_the_library_has_them_and_a_difference_is_a_doubt() -> None:
    library = StandIn()
    library.layout = type(library.layout)(130001, {**library.layout.strides, 10: 224})
    layout, doubts = calibrated(Cupti(library.functions))
    assert (layout.strides[10], doubts) == (224, ("CONCURRENT_KERNEL: 224 bytes, expected 216",))


def test_a_library_that_does_not_step_is_read_by_the_published_lengths() -> None:
    library = StandIn()
    library.fail["cuptiActivityGetNextRecord"] = 999
    layout, doubts = calibrated(Cupti(library.functions))
    assert (layout.strides[10], len(doubts)) == (216, 1)


def test_a_forked_child_is_refused_in_words(opening: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = access._open()
    monkeypatch.setattr(access, "_open", lambda: (opened[0], opened[1] + 1))
    with pytest.raises(CudaUnavailableError, match="forked after CUPTI was opened"):
        open_cupti()


def test_what_the_plugin_is_needs_nothing_of_nvidia(stand_in: StandIn) -> None:
    profiler = CudaProfiler()
    assert (profiler.name(), profiler.capabilities().torch_device, stand_in.calls.total()) == ("cuda", None, 0)
