"""A short hunt for deadlocks under each host; `deadlock_hunt.py` by hand hunts for as long as wanted.

DEVPROF_HUNT_S says for how many seconds; by default a few.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("deadlock_hunt.py")
SECONDS = os.environ.get("DEVPROF_HUNT_S", "5")


@pytest.mark.parametrize("host", ["python", "torch"])
def test_sixteen_threads_garbage_metadata_snapshots_and_sessions_never_wait_for_good(host: str) -> None:
    if host == "torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("this host is torch")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--host", host, "--seconds", SECONDS, "--patience", "120"],
        capture_output=True,
        text=True,
        timeout=float(SECONDS) + 280,
        check=False,
        env={**os.environ, "KINETO_LOG_LEVEL": "6"},
    )
    assert done.returncode == 0, done.stderr[-20_000:]
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["alive"] == []
    assert facts["sessions"] >= 1
    assert min(facts[kind] for kind in ("ops", "collections", "metadata", "snapshots", "tries")) > 0
