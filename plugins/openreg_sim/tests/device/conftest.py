"""Fixtures for the tests of the torch device: the device itself, what its runtime saw, and fresh interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="these tests run on torch")

PLUGIN_ROOT = Path(__file__).resolve().parents[2]

RunScript = Callable[..., "subprocess.CompletedProcess[str]"]


def _missing(reason: str) -> None:
    """Without the device there is nothing to test here; where it must be there, that is a failure."""
    (pytest.fail if os.environ.get("DEVPROF_REQUIRE_OPENREG") == "1" else pytest.skip)(reason)


@pytest.fixture(scope="session")
def library() -> Any:
    """The native library, built if need be, with the device made known to this process's torch."""
    from openreg_sim import autoload
    from openreg_sim.build_spec import openreg_build

    from devprof.native import build, missing

    reason = missing(openreg_build())
    if reason:
        _missing(f"the native device cannot be built here: {reason}")
    build(openreg_build())
    autoload.arm()
    if autoload.status().state is not autoload.State.ARMED:
        _missing(f"the device is {autoload.status().state.value}: {autoload.status().reason}")
    from openreg_sim.device import native

    return native()


@pytest.fixture(autouse=True)
def settled_device(library: Any) -> Iterator[None]:
    """Every test finds the device idle, unlimited, unseeded by others, and on device 0 and its default stream."""
    torch.openreg.set_device(0)
    torch.openreg.set_stream(torch.openreg.default_stream(0))
    torch.manual_seed(0)
    yield
    for device in range(torch.openreg.device_count()):
        torch.openreg.synchronize(device)
        torch.openreg.set_memory_limit(None, device)


class Calls:
    """What the runtime saw since `clear`; one row per call."""

    def __init__(self) -> None:
        from openreg_sim.runtime import Call, runtime

        self._call = Call
        self._runtime = runtime()

    def clear(self) -> None:
        """Let the record begin anew."""
        self._runtime.forget_truth()

    def rows(self, call: str | None = None) -> np.ndarray[Any, Any]:
        """Return the rows of one call, or all."""
        rows = self._runtime.ground_truth()
        return rows if call is None else rows[rows["call"] == self._call[call]]

    def launches(self) -> list[str]:
        """Return the names of the launches, in order."""
        return [self._runtime.name_of(int(row["name"])) for row in self.rows("LAUNCH")]

    def names(self) -> list[str]:
        """Return the names of all calls, in order."""
        return [self._call(int(row["call"])).name for row in self.rows()]


@pytest.fixture
def calls(library: Any) -> Calls:
    """What the runtime sees during the test."""
    seen = Calls()
    seen.clear()
    return seen


@pytest.fixture(scope="session")
def run_script(library: Any, tmp_path_factory: pytest.TempPathFactory) -> RunScript:
    """Run a script in a fresh interpreter that finds the plugin's entry points, and return what it printed and its code."""
    site = tmp_path_factory.mktemp("site")
    info = site / "openreg_under_test-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: openreg-under-test\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nopenreg = openreg_sim.autoload:arm\n")

    def run(code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(site), str(PLUGIN_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.run(
            [sys.executable, *options, "-c", code],
            env={**os.environ, "PYTHONPATH": path, **environment},
            cwd=site,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
