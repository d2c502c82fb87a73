"""What is missing for a build is said in one sentence, and torch is found without importing it."""

from __future__ import annotations

import dataclasses
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from devprof.contract import NativeBuild
from devprof.native import missing, torch_facts
from devprof.native.facts import compiler, python_include
from tests.unit.native.conftest import Compiler, FakeTorch

# -- torch ------------------------------------------------------------------------------------------------------------


def test_torch_is_described_from_its_files(fake_torch: FakeTorch) -> None:
    root = fake_torch("2.13.0a0+git1")
    found = torch_facts()
    assert found is not None
    assert (found.version, found.git_version, found.root, found.minor) == ("2.13.0a0+git1", "abc", root, "2.13")
    assert found.build_info == "torch 2.13.0a0+git1 abc"
    assert found.has_kineto
    include = root / "include"
    assert found.include_dirs == (include, include / "torch/csrc/api/include", include / "kineto")
    assert "torch" not in sys.modules


def test_a_folder_that_happens_to_be_called_torch_is_no_torch(fake_torch: FakeTorch, tmp_path: Path) -> None:
    (fake_torch("2.13.0") / "version.py").unlink()
    assert torch_facts() is None


def test_a_stand_in_for_torch_without_a_spec_is_no_torch(
    fake_torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert torch_facts() is None


def test_an_unreadable_version_is_unknown_and_not_tested(
    fake_torch: FakeTorch, tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake_torch("2.13.0") / "version.py").write_text("")
    found = torch_facts()
    assert found is not None
    assert (found.version, found.git_version) == ("unknown", "unknown")
    assert (missing(dataclasses.replace(tiny, needs_torch=True)) or "").startswith("torch unknown is not one of 2.12")


# -- what is missing --------------------------------------------------------------------------------------------------


def test_nothing_is_missing_where_everything_is_there(
    fake_torch: FakeTorch, fake_compiler: Compiler, tiny: NativeBuild
) -> None:
    fake_torch("2.13.0")
    fake_compiler("#!/bin/sh\n")
    assert missing(tiny) is None
    assert missing(dataclasses.replace(tiny, needs_torch=True)) is None


def test_without_torch_only_what_needs_it_is_missing_something(
    fake_torch: FakeTorch, fake_compiler: Compiler, tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    fake_compiler("#!/bin/sh\n")
    assert missing(dataclasses.replace(tiny, needs_torch=True)) == "torch is not installed in this environment"
    assert missing(tiny) is None


def test_a_torch_without_kineto_is_named(fake_torch: FakeTorch, tiny: NativeBuild) -> None:
    fake_torch("2.13.0", kineto=False)
    spec = dataclasses.replace(tiny, needs_torch=True)
    assert missing(spec) == "torch 2.13.0 carries no Kineto headers (include/kineto)"


@pytest.mark.parametrize("version", ["2.11.1", "2.15.0", "3.13.0"])
def test_an_untested_torch_is_refused_until_the_user_insists(
    version: str,
    fake_torch: FakeTorch,
    fake_compiler: Compiler,
    tiny: NativeBuild,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_torch(version)
    fake_compiler("#!/bin/sh\n")
    spec = dataclasses.replace(tiny, needs_torch=True)
    assert missing(spec) == (
        f"torch {version} is not one of 2.12, 2.13, 2.14: set DEVPROF_ALLOW_UNTESTED_TORCH=1 to build against it anyway"
    )
    monkeypatch.setenv("DEVPROF_ALLOW_UNTESTED_TORCH", "1")
    assert missing(spec) is None


def test_without_a_compiler_the_sentence_says_what_to_install(
    tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert compiler() is None
    assert missing(tiny) == "no C++ compiler was found: install g++ or clang++, or set CXX"


@pytest.mark.parametrize("chosen", ["no-such-c++", "no-such-c++ -m32", "'g++"])
def test_a_chosen_compiler_that_is_not_there_is_not_replaced_by_another(
    chosen: str, tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", chosen)
    assert missing(tiny) == f"CXX is set to {chosen!r}, and no such program was found"


def test_a_chosen_compiler_keeps_its_arguments(fake_compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_compiler("#!/bin/sh\n")
    monkeypatch.setenv("CXX", f"'{path}' g++ -m64")
    assert compiler() == [str(path), "g++", "-m64"]


def test_an_empty_choice_is_no_choice(fake_compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_compiler("#!/bin/sh\n").rename(Path(fake_compiler("")).with_name("g++"))
    monkeypatch.setenv("PATH", str(path.parent))
    monkeypatch.setenv("CXX", " ")
    assert compiler() == [str(path)]


def test_without_pythons_headers_what_needs_them_says_so(
    fake_compiler: Compiler, tiny: NativeBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_compiler("#!/bin/sh\n")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert python_include() is None
    found = missing(dataclasses.replace(tiny, needs_python=True))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found == f"Python {version} headers (Python.h) are not installed"


def test_on_another_system_nothing_is_built(tiny: NativeBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert missing(tiny) == "native libraries are built on Linux and macOS only, and this is win32"
