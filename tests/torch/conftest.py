"""Fixtures of the tests on real torch: a toy backend, plugins that a test writes, programs in processes of their own."""

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

pytest.importorskip("torch", reason="these tests run on torch")
_SUPPORT = Path(__file__).parent / "support"
sys.path.insert(0, str(_SUPPORT))

import torch  # noqa: E402
import toyland  # noqa: E402 - found through the line above

import devprof.torch  # noqa: E402
from devprof import correlation, registry  # noqa: E402
from devprof.testing import ScriptedProfiler  # noqa: E402
from devprof.torch import interpose  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let torch say, once per process, that a profile used again forgets its first cycle: tests do that on purpose."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"))


@pytest.fixture(autouse=True)
def _only_the_tests_own_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test starts and ends with torch idle, devprof installed, and no plugin but its own."""
    toyland.backend()
    toyland.block_installed_plugins(monkeypatch.setenv)
    for name in ("DEVPROF_DISABLE", "DEVPROF_PLUGINS", "DEVPROF_BUILD"):
        monkeypatch.delenv(name, raising=False)
    devprof.torch.install()
    yield
    left = (interpose._INTERPOSER.turns.prepared, interpose._INTERPOSER.turns.active)
    interpose._INTERPOSER.turns.reset()
    monkeypatch.undo()
    registry.refresh()
    assert all(run is None or run.session is None for run in left), "a session of devprof is left"
    assert not torch.autograd.profiler._is_profiler_enabled, "torch thinks that a profile is recording"
    assert correlation.set_provider(None) is None, "the correlation stacks of a session are left in place"


@pytest.fixture
def join() -> Iterator[Callable[..., ScriptedProfiler]]:
    """Let a plugin that the test writes take part in device sessions; it is taken out at the end."""
    taken: list[str] = []

    def join(profiler: ScriptedProfiler | None = None, **fields: Any) -> ScriptedProfiler:
        profiler = profiler or toyland.scripted(**fields)
        taken.append(toyland.take_in(profiler))
        return profiler

    yield join
    for name in taken:
        toyland.take_out(name)


@pytest.fixture
def join_stubs() -> Iterator[Callable[[toyland.Stubs], toyland.Stubs]]:
    """Let a test's stubs stand behind torch's legacy profiler; they are taken out at the end."""
    taken: list[str] = []

    def join_stubs(stubs: toyland.Stubs) -> toyland.Stubs:
        taken.append(toyland.take_in(stubs=stubs))
        return stubs

    yield join_stubs
    for name in taken:
        toyland.take_out(name)


@pytest.fixture
def deliver(join: toyland.Join, tmp_path: Path) -> toyland.Deliver:
    """Run one session of a plugin and read all of its results; given is the plugin, its script, or records."""

    def deliver(
        script: Any = (), *, body: Callable[[], Any] = lambda: torch.ones(2) + 1, options: Any = None, **fields: Any
    ) -> toyland.Delivered:
        if isinstance(script, ScriptedProfiler):
            plugin = join(script)
        else:
            plugin = join(script=script if callable(script) else lambda start_ns, end_ns: script, **fields)
        return toyland.delivered(plugin, tmp_path, body, options or {})

    return deliver


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Any]:
    """Run a program in a process of its own; returns the facts that it gave to `toyland.say`, with `exit_code` and `stderr`."""

    def run(text: str, *, timeout_s: float = 60, exit_code: int | None = 0, **environment: str) -> dict[str, Any]:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(text))
        python_path = os.pathsep.join([str(_SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
        # a program that needs torch's entry points says so; the others start faster without whatever is installed here
        env = {**os.environ, "PYTHONPATH": python_path, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **environment}
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(path)],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert exit_code is None or done.returncode == exit_code, (
            f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        said = done.stdout.strip().splitlines()[-1:] or ["{}"]
        facts = json.loads(said[0]) if said[0].startswith("{") else {}
        return {**facts, "exit_code": done.returncode, "stderr": done.stderr}

    return run
