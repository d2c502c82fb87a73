"""A process without devprof's wrap is torch's own: its functions are the originals, and nothing of devprof is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

WRAPPED = ("_prepare_profiler", "_enable_profiler", "_disable_profiler", "_toggle_collection_dynamic")
SAVES = "devprof.torch.sink_save"

# the originals are noted before devprof's entry point runs: torch imports these names from its C extension
PROGRAM = """
import json, sys, threading
import torch
from torch.autograd import profiler as autograd_profiler
native = torch._C._autograd
names = sys.argv[1].split(",")
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
    torch.ones(2)
print(json.dumps({
    "originals": [getattr(autograd_profiler, name) is getattr(native, name) for name in names],
    "save": getattr(vars(native._ProfilerResult)["save"], "__module__", None),
    "hooks": [str(hook) for hook in sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks.values()],
    "modules": sorted(name for name in sys.modules if name.partition(".")[0] in ("devprof", "pluggy")),
    "threads": [thread.name for thread in threading.enumerate()],
    "events": [event.name for event in prof.events()],
}))
"""


def _facts(**environment: str) -> dict[str, Any]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("DEVPROF_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(WRAPPED)],
        env=ours
        | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1", "DEVPROF_OPENREG": "0", "KINETO_LOG_LEVEL": "99"}
        | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def test_with_the_wrap_the_functions_are_devprofs_so_that_these_tests_can_fail() -> None:
    facts = _facts()
    assert facts["originals"] == [False] * 4
    assert facts["save"] == SAVES
    assert "devprof.torch.interpose" in facts["modules"]


def test_devprof_disable_leaves_torch_as_it_is_whatever_else_is_asked(tmp_path: Path) -> None:
    also = {"DEVPROF_ON_DEMAND": "1", "KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": str(tmp_path)}
    facts = _facts(DEVPROF_DISABLE="1", **also)
    assert facts["originals"] == [True] * 4
    assert facts["save"] != SAVES
    assert [hook for hook in facts["hooks"] if "devprof" in hook] == []
    assert facts["threads"] == ["MainThread"]
    assert "aten::ones" in facts["events"]
    # the entry point that torch itself imports, and what stands above it; the simulated device has one of its own
    assert set(facts["modules"]) <= {"devprof", "devprof.torch", "devprof.torch.autoload"}


def test_without_torchs_autoload_nothing_of_devprof_is_loaded_at_all() -> None:
    facts = _facts(TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert facts["originals"] == [True] * 4
    assert facts["save"] != SAVES
    assert facts["modules"] == []
    assert facts["threads"] == ["MainThread"]
