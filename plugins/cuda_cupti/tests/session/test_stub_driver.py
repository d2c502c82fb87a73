"""With a driver's library that answers as it is told: a default profile is quiet, and CUPTI is not called where it may crash.

The libraries are compiled here, of a few lines each; without a compiler the tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
ACCESS = "from cuda_cupti.access import open_cupti; open_cupti()"
WORKLOAD = "from cuda_cupti.workload import Workload; Workload()"

_DRIVER = """
#include <cstdlib>
static int told(const char* name, int otherwise) { const char* said = getenv(name); return said ? atoi(said) : otherwise; }
extern "C" int cuInit(unsigned) { return told("STUB_INIT", 0); }
extern "C" int cuDriverGetVersion(int* found) { *found = told("STUB_VERSION", 13000); return 0; }
extern "C" int cuDeviceGetCount(int* found) { *found = 1; return 0; }
"""
_CUPTI = """
#include <unistd.h>
extern "C" int cuptiGetVersion(unsigned*) { return (int)write(2, "CUPTI WAS CALLED", 16) * 0 + 999; }
"""
_PROFILE = """
import json, sys
from devprof.registry import discover, register
import cuda_cupti.plugin, devprof
if "cuda" not in [one.name for one in discover().profilers]:
    register(cuda_cupti.plugin, "cuda")
with devprof.profile(activities=json.loads(sys.argv[1]), host="python") as prof:
    pass
print(json.dumps([failure for ledger in prof.report.ledgers.values() for failure in ledger.failures]))
"""


def _compile(source: str, path: Path, *options: str) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    path.with_suffix(".cpp").write_text(source, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", *options, "-o", str(path), str(path.with_suffix(".cpp"))]
    subprocess.run(command, check=True, timeout=120)


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """Return a folder with a libcuda.so.1."""
    folder = tmp_path / "driver"
    folder.mkdir()
    _compile(_DRIVER, folder / "libcuda.so.1")
    return folder


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """Return a libcupti under a toolkit's file name, with a link to it that tells no release either."""
    _compile(_CUPTI, tmp_path / "libcupti.so.2025.3.1", "-Wl,-soname,libcupti.so.13")
    (tmp_path / "libcupti.so").symlink_to("libcupti.so.2025.3.1")
    return tmp_path / "libcupti.so"


def _run(folder: Path, program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), str(ROOT / "plugins/cuda_cupti"), str(ROOT / "plugins/openreg_sim")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "LD_LIBRARY_PATH": str(folder), **variables}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def _profile(folder: Path, activities: list[str] | None, **variables: str) -> tuple[Any, str]:
    done = _run(folder, _PROFILE, json.dumps(activities), **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_default_profile_beside_a_driver_without_a_gpu_is_quiet_and_one_that_names_it_says_why(
    driver: Path, toolkit: Path
) -> None:
    variables = {"STUB_INIT": "100", "DEVPROF_LIBCUPTI": str(toolkit)}
    assert _profile(driver, None, **variables) == ([], "")
    (failure,), stderr = _profile(driver, ["cpu", "cuda"], **variables)
    assert "The driver shows no GPU" in failure
    assert "CUPTI WAS CALLED" not in stderr


@pytest.mark.parametrize("way", ["loaded", "named"])
def test_a_toolkits_library_that_is_too_new_is_known_by_its_own_name_and_is_not_called(
    driver: Path, toolkit: Path, way: str
) -> None:
    if way == "named":
        done = _run(driver, ACCESS, STUB_VERSION="12080", DEVPROF_LIBCUPTI=str(toolkit))
    else:
        load = f"import ctypes, os; ctypes.CDLL({str(toolkit)!r}); os.environ.pop('DEVPROF_LIBCUPTI', None); "
        done = _run(driver, load + ACCESS, STUB_VERSION="12080")
    assert "the driver is too old for CUPTI 13" in done.stderr
    assert "CUPTI WAS CALLED" not in done.stderr


def test_a_library_that_the_driver_can_work_with_is_called(driver: Path, toolkit: Path) -> None:
    done = _run(driver, ACCESS, DEVPROF_LIBCUPTI=str(toolkit))
    assert "CUPTI WAS CALLED" in done.stderr
    assert "cuptiGetVersion answered 999" in done.stderr


def test_a_broken_driver_library_is_told_in_the_loaders_words(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("no library", encoding="utf-8")
    done = _run(tmp_path, ACCESS)
    assert f"no NVIDIA driver here ({tmp_path}/libcuda.so.1: " in done.stderr


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("100", "The driver shows no GPU"),
        ("34", "stub, for linking only"),
        ("0", "no cuDevicePrimaryCtxRetain; install"),
    ],
)
def test_the_conformance_kits_workload_says_what_to_do(driver: Path, code: str, said: str) -> None:
    stderr = _run(driver, WORKLOAD, STUB_INIT=code).stderr
    assert "CudaUnavailableError" in stderr or "NothingToTraceError" in stderr
    assert said in stderr
