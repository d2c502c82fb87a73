"""A cache of its own per test, a tiny library to build, and compilers that misbehave."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devprof.contract import NativeBuild
from devprof.native import torch_facts
from devprof.native.facts import compiler

TINY = """
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT const char* devprof_build_info(void) { return DEVPROF_BUILD_INFO; }
EXPORT int answer(void) { return 42; }
"""

Compiler = Callable[[str], Path]
FakeTorch = Callable[..., Path]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's libraries are kept; not there yet."""
    for name in ("CXX", "XDG_CACHE_HOME", "DEVPROF_ALLOW_UNTESTED_TORCH"):
        monkeypatch.delenv(name, raising=False)
    directory = tmp_path / "cache"
    monkeypatch.setenv("DEVPROF_CACHE", str(directory))
    return directory


@pytest.fixture
def tiny(tmp_path: Path) -> NativeBuild:
    """A library without torch."""
    source = tmp_path / "tiny.cpp"
    source.write_text(TINY)
    return NativeBuild("tiny", (source,), needs_torch=False)


@pytest.fixture
def needs_compiler() -> None:
    """Skip where nothing can be compiled."""
    if compiler() is None:
        pytest.skip("needs a C++ compiler")


@pytest.fixture
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """Set ``$CXX`` to a shell script."""

    def _install(script: str) -> Path:
        path = tmp_path / "fake-cxx"
        path.write_text(textwrap.dedent(script))
        path.chmod(0o700)
        monkeypatch.setenv("CXX", str(path))
        return path

    return _install


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTorch]:
    """Put another torch in front: ``fake_torch("2.13.0")``."""

    def _install(version: str, *, kineto: bool = True) -> Path:
        root = tmp_path / "site" / "torch"
        (root / "include/kineto").mkdir(parents=True)
        (root / "__init__.py").touch()
        (root / "version.py").write_text(
            f"from typing import Optional\n__version__ = '{version}'\ngit_version = 'abc'\n"
        )
        if kineto:
            (root / "include/kineto/libkineto.h").touch()
        return root

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    torch_facts.cache_clear()
    yield _install
    torch_facts.cache_clear()
