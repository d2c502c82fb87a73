"""A plugin that serves a torch device which nobody has named yet when a command begins."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from devprof.replay import load
from tests.cli.command import devprof as command

pytest.importorskip("torch", reason="this is about torch's device")
ZOO = Path(__file__).parents[1] / "conformance"
PLUGIN = """
from devprof.contract import hookimpl
from toy import ToyDevice, ToyProfiler, ToyWorkload

DEVICE = ToyDevice()

@hookimpl
def devprof_activity_profilers():
    return [ToyProfiler(DEVICE, "npu")]

def workload():
    return ToyWorkload(DEVICE)
"""
PROGRAM = """
import sys
import torch
import toy_plugin
from toy import KERNEL

if sys.argv[1:] != ["unnamed"]:
    torch.utils.rename_privateuse1_backend("npu")  # what a backend does when it is imported
with torch.profiler.record_function("work"):
    toy_plugin.DEVICE.launch(KERNEL, "gemm")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an installed plugin and a program for its device."""
    (tmp_path / "toy_plugin.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    facts = tmp_path / "toy_plugin-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-plugin\nVersion: 1.0\n", encoding="utf-8")
    groups = "[devprof.plugins]\ntoy = toy_plugin\n[devprof.workloads]\ntoy = toy_plugin:workload\n"
    (facts / "entry_points.txt").write_text(groups, encoding="utf-8")
    return tmp_path


def devprof(*words: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(cwd), str(ZOO), *filter(None, [os.environ.get("PYTHONPATH")])])
    alone = {"DEVPROF_BLOCK_PLUGINS": "openreg,cuda", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "KINETO_LOG_LEVEL": "99"}
    return command(*words, cwd=cwd, PYTHONPATH=path, **alone, **more)


def test_a_plugin_whose_device_the_program_names_itself_is_missed_aloud(folder: Path) -> None:
    done = devprof("run", "program.py", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == (
        "toy took no part: torch's device had no name when the program began, and is 'npu' since: say --torch-device npu"
    )
    done = devprof("run", "program.py", "unnamed", cwd=folder)
    assert done.stderr.splitlines()[-1] == (
        "toy took no part: it serves 'npu', and torch's device has no name: say --torch-device npu"
    )


def test_a_device_that_is_named_before_the_program_has_its_plugin_and_the_program_may_name_it_again(
    folder: Path,
) -> None:
    done = devprof("run", "--torch-device", "npu", "program.py", cwd=folder)
    assert (done.returncode, "took no part" in done.stderr) == (0, False), done.stderr
    assert "toy: produced 2 = emitted 2 + dropped 0 + rejected 0" in done.stderr


def test_a_device_of_another_name_is_told_apart(folder: Path) -> None:
    done = devprof("run", "--torch-device", "other", "program.py", "unnamed", cwd=folder)
    assert done.stderr.splitlines()[-1] == "toy took no part: it serves 'npu', and torch's device is 'other'"


def test_a_device_that_was_named_in_time_is_no_reason(folder: Path) -> None:
    done = devprof("run", "--torch-device", "npu", "program.py", cwd=folder, DEVPROF_DISABLE="1")
    assert done.stderr.splitlines()[-1] == (
        "toy took no part: it has no session here; `devprof doctor` says what keeps devprof or the plugin from taking part"
    )


def test_what_was_left_out_by_name_is_not_missed(folder: Path) -> None:
    assert "took no part" not in devprof("run", "-a", "cpu", "program.py", cwd=folder).stderr


def test_a_recording_names_the_device_that_its_plugin_serves(folder: Path) -> None:
    done = devprof("record", "--plugin", "toy", "program.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    (session,) = load(folder / "program.devrec").sessions
    assert sum(map(len, session.batches)) == 2


def test_the_kit_names_the_device_and_tries_both_hosts(folder: Path) -> None:
    done = devprof("conform", "toy", "--only", "C404", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["Linking and flows: 2 of 2", "toy: 2 of 2 checks hold"]


def test_where_the_kit_leaves_torch_out_it_says_why(folder: Path) -> None:
    done = devprof("conform", "cli_toy:right", "--workload", "cli_toy:Workload", "--only", "C404", cwd=folder)
    assert done.stdout.splitlines()[-1] == "torch: not tried, because the plugin serves no torch device"
