"""Fixtures of the tests on the simulated device: the device itself, and programs in fresh interpreters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="these tests run on torch")
_HERE = Path(__file__).parent
_SUPPORT = _HERE / "support"
sys.path.insert(0, str(_SUPPORT))

Fresh = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let torch say, once per process, that a profile used again forgets its first cycle: tests do that on purpose."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"))


@pytest.fixture(scope="session", autouse=True)
def _device() -> None:
    """Without the device there is nothing to test here; where it must be there, that is a failure."""
    reason = _what_is_missing()
    if reason and os.environ.get("DEVPROF_REQUIRE_OPENREG") == "1":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


def _what_is_missing() -> str:
    try:
        from openreg_sim import autoload
    except ImportError as error:
        return f"the simulated device is not installed: {error}"
    status = autoload.status()
    if status.state is not autoload.State.ARMED:
        return f"the simulated device is {status.state.value}: {status.reason}"
    return ""


@pytest.fixture(autouse=True)
def _settled_device(_device: None) -> Iterator[None]:
    """Every test finds the devices idle and faultless, the defaults current, and torch's profiler at rest."""
    from openreg_sim.runtime import runtime

    torch.openreg.set_device(0)
    torch.manual_seed(0)
    yield
    runtime().clear_faults()
    for device in reversed(range(torch.openreg.device_count())):
        torch.openreg.set_stream(torch.openreg.default_stream(device))
        torch.openreg.synchronize(device)
        torch.openreg.set_memory_limit(None, device)
    assert not torch.autograd.profiler._is_profiler_enabled, "torch thinks that a profile is recording"


def run_fresh(*command: str | Path, folder: Path, timeout_s: float = 120, **environment: str) -> Any:
    """Run a program in a fresh interpreter, in `folder`."""
    path = os.pathsep.join([str(_SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *map(str, command)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.fixture(scope="session")
def fresh(_device: None) -> Fresh:
    """Run a program in a fresh interpreter and return what became of it."""
    return run_fresh


@pytest.fixture(scope="session")
def said_by(_device: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Run a program, by default of `support`, in a fresh interpreter; return the facts that it gave to `simland.say`."""

    def run(name: str | Path, *arguments: str, **environment: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("program")
        done = run_fresh(_SUPPORT / name, *arguments, folder=folder, KINETO_LOG_LEVEL="99", **environment)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts

    return run


@pytest.fixture(scope="session")
def said(
    said_by: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., dict[str, Any]]:
    """Run the text of a program in a fresh interpreter; return the facts that it gave to `simland.say`."""

    def run(text: str, *arguments: str, **environment: str) -> dict[str, Any]:
        path = tmp_path_factory.mktemp("text") / "program.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return said_by(path, *arguments, **environment)

    return run


@pytest.fixture(scope="session")
def virtual_runs(said_by: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """The same sessions under a virtual clock in two processes; see `support/virtual_program.py`."""
    return [said_by("virtual_program.py", DEVPROF_OPENREG_CLOCK="virtual") for _ in range(2)]
