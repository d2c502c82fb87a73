"""On a machine with an NVIDIA GPU the smoke test passes; without one there is nothing to try."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.cupti_smoke import failures

ROOT = Path(__file__).parents[2]
FOLDERS = ("", "plugins/cuda_cupti", "tests/gpu", "plugins/cuda_cupti/tests/session/support")


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.gpu
@pytest.mark.skipif(not _has_driver(), reason="needs an NVIDIA GPU and its driver")
def test_the_plugin_does_on_a_real_gpu_what_it_promises() -> None:
    script = Path(__file__).with_name("cupti_smoke.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("mode", ["cupy", "memory", "cost", "native", "golden"])
def test_the_modes_of_the_script_find_their_own_checks_kept_on_a_stand_in(mode: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("without_gpu.py")
    path = os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)
    environment = os.environ | {"OUT": str(tmp_path), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, str(script), mode], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert failures(result) == [], done.stderr
    assert result["checks"], result


def test_without_a_driver_the_script_says_so_and_fails_in_order() -> None:
    if _has_driver():
        pytest.skip("this machine has an NVIDIA driver")
    script = Path(__file__).with_name("cupti_smoke.py")
    done = subprocess.run(
        [sys.executable, str(script), "facts"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, "no NVIDIA driver here" in done.stdout, done.stderr) == (1, True, "")
