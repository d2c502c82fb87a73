"""Fixtures of the tests in a browser: a headless Chromium, and a trace to look at."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from devprof.store import Trace, load
from tests.browser.support.chromium import NAMES, Page, chromium, find_chromium

PROGRAM = """
    import sys
    sys.modules["torch"] = None  # as on a machine without torch
    import devprof
    from openreg_sim.ring import CopyKind
    from openreg_sim.runtime import runtime

    device = runtime()
    copies = device.create_stream(0)

    def step():
        with devprof.record_function("forward"):
            device.memcpy(CopyKind.HOST_TO_DEVICE, 3_000_000, stream=copies)
            for _ in range(4):
                device.launch("mm_kernel", flops=8e8, bytes=4e6)
                device.launch("add_kernel", flops=1e6, bytes=4e6)
        with devprof.record_function("backward"):
            for _ in range(4):
                device.launch("mm_grad_kernel", flops=1.6e9, bytes=4e6)
        device.device_synchronize()

    schedule = devprof.schedule(wait=0, warmup=1, active=4, repeat=1)
    with devprof.profile(activities=["cpu", "openreg"], schedule=schedule, host="python") as prof:
        for _ in range(5):
            step()
            prof.step()
    prof.trace.save(sys.argv[1])
"""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page of a browser that runs for all tests."""
    program = find_chromium()
    if program is None:
        pytest.skip(f"no Chromium on PATH ({', '.join(NAMES)})")
    with chromium(program, tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of four steps on the simulated runtime, without torch."""
    if find_spec("openreg_sim") is None:
        pytest.skip("the simulated device is not installed")
    path = tmp_path_factory.mktemp("recorded") / "four_steps.devprof"
    subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), path], check=True, timeout=120)
    return path


@pytest.fixture(scope="session")
def trace(recorded: Path) -> Trace:
    """What was recorded."""
    return load(recorded)
