"""`devprof doctor`: why nothing shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLUGIN = """
import time
from devprof.contract import Capabilities, ClockDomain, hookimpl
from devprof.model import ActivityType


class Session:
    def start(self): {start}
    def stop(self): pass
    def process_trace(self, logger, linked, start_ns, end_ns): pass
    def clock_domain(self): return ClockDomain("npu", 1e9)
    def sample_clock(self): return time.perf_counter_ns()


class Profiler:
    def name(self): return "npu"
    def capabilities(self): return Capabilities(torch_device="npu")
    def available_activities(self): return {{ActivityType.CONCURRENT_KERNEL}}
    def configure(self, activity_types, config, *, ts_ms=None, duration_ms=None): return {session}


@hookimpl
def devprof_activity_profilers():
    return [Profiler()]
"""


def doctor(
    folder: Path, *words: str, start: str = "pass", session: str = "Session()", **environment: str
) -> tuple[int, Any]:
    (folder / "npu_plugin.py").write_text(PLUGIN.format(start=start, session=session), encoding="utf-8")
    metadata = folder / "npu-1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: npu\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[devprof.plugins]\nnpu = npu_plugin\n")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "devprof", "doctor", "--json", *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "DEVPROF_BLOCK_PLUGINS": "openreg,cuda",
            "DEVPROF_OPENREG": "0",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_a_short_profile_says_that_a_plugin_works_and_how_well_its_clock_is_known(tmp_path: Path) -> None:
    code, facts = doctor(tmp_path, "--try")
    assert facts["tried"]["npu"]["well"] or "sample" in facts["tried"]["npu"]["says"]
    assert facts["tried"]["npu"]["says"].startswith("a session starts and stops; its clock 'npu' is known to ")
    assert code == (0 if facts["tried"]["npu"]["well"] else 1)


@pytest.mark.parametrize(
    ("start", "session", "says"),
    [
        ("1 / 0", "Session()", "set aside: plugin 'npu', session.start: ZeroDivisionError: division by zero"),
        ("pass", "None", "it sat out: configure() returned None"),
    ],
)
def test_a_short_profile_says_why_a_plugin_gives_nothing(tmp_path: Path, start: str, session: str, says: str) -> None:
    code, facts = doctor(tmp_path, "--try", start=start, session=session)
    assert (code, facts["tried"]["npu"]) == (1, {"well": False, "says": says})


def test_no_device_is_touched_without_being_asked_to(tmp_path: Path) -> None:
    code, facts = doctor(tmp_path, start="1 / 0")
    assert (code, facts["tried"]) == (0, {})


def test_it_says_that_no_backend_is_there_and_that_the_wrap_is_switched_off(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="this is about torch as a host")
    _, facts = doctor(tmp_path)
    wrapped, backend = facts["torch"][:2]
    assert wrapped == {"well": True, "says": "torch's profiler is wrapped: plugins can take part"}
    assert backend["well"] is False
    assert "no backend has renamed PrivateUse1" in backend["says"]
    assert "Plugins serve: npu (npu)" in backend["says"]
    _, facts = doctor(tmp_path, DEVPROF_DISABLE="1", DEVPROF_PLUGINS="npu,gpu")
    assert [one["says"] for one in facts["torch"]][:4] == [
        "torch's profiler is not wrapped: DEVPROF_DISABLE=1 is set",
        backend["says"],
        "torch: 'gpu' is enabled by name, and there is no such plugin",
        "torch: 'npu' is enabled by name",
    ]
