"""A recording of torch ops on the simulated device, replayed under torch in a process that has no such device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="these tests run on torch")

PROGRAM = """
import torch

x = torch.ones(64, 64, device="openreg")
with torch.profiler.record_function("mine"):
    y = (x @ x).relu()
y.cpu()
"""

REPLAY = """
import json, sys
import torch
from torch.profiler import ProfilerActivity, profile
import devprof.torch
from devprof.registry import register
from devprof.replay import ReplayProfiler
from devprof.testing import plugin_of
from devprof.torch.replaying import run_host_side

torch.utils.rename_privateuse1_backend("openreg")
replay = ReplayProfiler(sys.argv[1], name="again", faults=sys.argv[2])
register(plugin_of(replay), "again")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    run_host_side(replay.player)
work = {
    event.name: sorted(kernel.name for kernel in event.kernels) for event in prof.events() if event.kernels
}
report = devprof.torch.report_of(prof)
print(json.dumps({"work": work, "clean": report.clean, "text": str(report)}))
"""


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "KINETO_LOG_LEVEL": "99", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if "openreg" in done.stderr and "no attribute" in done.stderr:
        pytest.skip("needs the simulated device")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def replayed(folder: Path, faults: str = "") -> Any:
    away = {"DEVPROF_OPENREG": "0", "DEVPROF_BLOCK_PLUGINS": "openreg"}
    return json.loads(
        run("-W", "ignore", "-c", REPLAY, folder / "program.devrec", faults, cwd=folder, **away).splitlines()[-1]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recorded program."""
    folder = tmp_path_factory.mktemp("replay")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    run("-m", "devprof", "record", "--plugin", "openreg", "--host", "torch", "program.py", cwd=folder)
    return folder


def test_kernels_are_under_the_ops_that_launched_them_and_the_account_is_clean(folder: Path) -> None:
    found = replayed(folder)
    assert found["work"] == {
        "aten::fill_": ["fill_kernel"],
        "aten::mm": ["mm_kernel"],
        "aten::relu": ["relu_kernel"],
        "aten::copy_": ["Memcpy DtoH (Device -> Pageable)"],
    }
    assert found["clean"], found["text"]


def test_a_fault_shows_in_torchs_own_events(folder: Path) -> None:
    found = replayed(folder, "no-ids")
    assert found["work"] == {}
    assert not found["clean"]
    assert "0 of 4 device records linked" in found["text"]


def test_the_same_recording_is_replayed_without_torch(folder: Path) -> None:
    said = run("-m", "devprof", "replay", "program.devrec", cwd=folder, DEVPROF_BLOCK_PLUGINS="openreg")
    assert "4 of 4 device records linked" in said
