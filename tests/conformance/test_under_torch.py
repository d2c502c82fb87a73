"""Under torch a right plugin keeps every promise as well, and every check that is tried there catches its broken plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devprof.testing.conformance import CHECKS

pytest.importorskip("torch", reason="these checks run on torch")
PROGRAM = Path(__file__).with_name("torch_program.py")


def test_the_zoo_is_told_apart_under_torch_too(tmp_path: Path) -> None:
    # a process of its own: the backend of torch is renamed once in a process's life
    environment = {
        **os.environ,
        "DEVPROF_BLOCK_PLUGINS": "openreg",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "KINETO_LOG_LEVEL": "99",
    }
    command = [sys.executable, str(PROGRAM)]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    numbers = [check.number for check in CHECKS if "torch" in check.hosts]
    caught = {animal: sorted(failed) for animal, failed in answers.items()}
    assert caught == {"right": [], **{number: [number] for number in numbers}}
