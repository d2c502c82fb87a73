"""A registry of its own per test, and distributions on disk for it to find."""

from __future__ import annotations

import importlib.metadata
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devprof.registry import discovery

Install = Callable[..., None]


@pytest.fixture
def fresh_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No catalogue yet, no plugin of this process, and only distributions under the test's own folder."""

    def entry_points(*, group: str) -> list[importlib.metadata.EntryPoint]:
        found = importlib.metadata.distributions(path=[str(tmp_path)])
        return [entry for distribution in found for entry in distribution.entry_points if entry.group == group]

    monkeypatch.setattr(discovery, "_catalogue", None)
    monkeypatch.setattr(discovery, "_in_process", {})
    monkeypatch.setattr(discovery, "entry_points", entry_points)
    monkeypatch.delenv("DEVPROF_BLOCK_PLUGINS", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("plugin_"):
            del sys.modules[name]


@pytest.fixture
def install(fresh_registry: None, tmp_path: Path) -> Install:
    """Install a distribution: ``install("dist", entry_point="value", plugin_x="source")``."""

    def _install(distribution: str, entries: dict[str, str], version: str = "1.0", **modules: str) -> None:
        info = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
        (info / "entry_points.txt").write_text(f"[devprof.plugins]\n{lines}")
        for module, source in modules.items():
            (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))

    return _install
