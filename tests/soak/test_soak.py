"""Some seconds of the soak script: accounts close, snapshots hold, memory is flat. It can run for hours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openreg_sim", reason="it runs on the simulated device")

ROOT = Path(__file__).parents[2]


def soaked(*words: str) -> dict[str, Any]:
    """Run the script, and return the figures that it prints; it fails where it finds a problem."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("mode", ["ring", "flight", "totals", "spill"])
def test_some_seconds_at_full_speed_close_their_account(mode: str) -> None:
    told = soaked(mode, "--minutes", "0.1", "--max-records", "20000", "--snapshot-s", "0.5", "--sample-s", "0.2")
    assert told["closes"]
    assert told["launches"] > 1000
    if mode == "flight":
        assert told["snapshot_ms"]["n"] >= 1


def test_sessions_leave_no_growth() -> None:
    assert soaked("sessions", "--sessions", "150")["closes"]
