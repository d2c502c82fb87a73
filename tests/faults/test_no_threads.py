"""Where no thread can be started, at a program's end or at the system's limit, a profile still stops and loses nothing.

Python 3.12 and later start no thread once handlers of `atexit` run; older ones do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import atexit, json, os, sys, threading, warnings
from importlib.metadata import entry_points
from devprof import registry

host, ending = sys.argv[1:]
os.environ["DEVPROF_BLOCK_PLUGINS"] = ",".join(one.name for one in entry_points(group=registry.ENTRY_POINT_GROUP))
warnings.simplefilter("error")
if host == "torch":
    import torch
    if torch._C._get_privateuse1_backend_name() == "privateuseone":
        torch.utils.rename_privateuse1_backend("toy")
    import devprof.torch
    devprof.torch.install()

import devprof
from devprof import correlation
from devprof.capture import PluginLedger
from devprof.model import ActivityType, GenericTraceActivity
from devprof.testing import ScriptedProfiler, plugin_of

PluginLedger.none_linked = False  # the records here carry no op ids on purpose

def script(start_ns, end_ns):
    return [GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", start_ns, start_ns + 10)] * 5

def start(thread):
    raise RuntimeError("can't start new thread")

def end():
    if ending == "no thread is left":
        threading.Thread.start = start
    prof.stop()
    ledger = prof.report.ledgers["late"]
    print(json.dumps({
        "emitted": ledger.emitted, "produced": ledger.produced, "failures": ledger.failures, "notes": prof.report.notes,
        "in the trace": [prof.trace.name_of(event) for event in range(len(prof.trace))].count("k"),
        "calls": plugin.sessions[-1].calls, "provider left": host == "torch" and correlation.set_provider(None) is not None,
    }))

plugin = ScriptedProfiler(label="late", script=script)
registry.register(plugin_of(plugin), "late")
prof = devprof.profile(host=host, activities=["cpu", "late"], with_stack=True)
prof.start()
with devprof.record_function("range"):
    pass
atexit.register(end)
"""


@pytest.mark.parametrize("ending", ["at exit", "no thread is left"])
@pytest.mark.parametrize("host", ["python", "torch"])
def test_a_profile_that_stops_where_no_thread_can_be_started_has_every_record(
    tmp_path: Path, host: str, ending: str
) -> None:
    if host == "torch":
        pytest.importorskip("torch", reason="the other host is torch")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, host, ending],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    calls = found.pop("calls")
    assert [hook for hook in calls if hook in ("start", "stop", "process_trace")] == ["start", "stop", "process_trace"]
    assert found == {
        "emitted": 5,
        "produced": 5,
        "failures": [],
        "notes": [],
        "in the trace": 5,
        "provider left": False,
    }, done.stderr
