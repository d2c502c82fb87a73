"""What this environment offers to a native build: torch, Kineto's headers, a compiler, Python's headers.

torch is found without importing it, so that a build works beside a broken or half-imported torch.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["FLAGS", "TESTED_TORCH", "TorchFacts", "compiler", "include_dir", "missing", "python_include", "torch_facts"]

TESTED_TORCH = ("2.12", "2.13", "2.14")
"""torch versions that the native sources are written for; 2.13 is the one the tests run on."""

FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
"""Compiler flags of every build."""


@dataclass(frozen=True, slots=True)
class TorchFacts:
    """The installed torch, as a compiler sees it.

    Attributes:
        version: such as ``2.13.0+cpu``.
        git_version: hash of the commit it was built from.
        root: directory of the package.
    """

    version: str
    git_version: str
    root: Path

    @property
    def minor(self) -> str:
        """Major and minor number, such as ``2.13``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        """Directories of torch's, its C++ API's and Kineto's headers."""
        include = self.root / "include"
        return include, include / "torch/csrc/api/include", include / "kineto"

    @property
    def has_kineto(self) -> bool:
        """True where the wheel carries Kineto's headers (2.10 and later on Linux and macOS)."""
        return (self.root / "include/kineto/libkineto.h").exists()

    @property
    def build_info(self) -> str:
        """Text that a library built against this torch carries, and that the loader compares."""
        return f"torch {self.version} {self.git_version}"


@functools.cache
def torch_facts() -> TorchFacts | None:
    """Return the installed torch, or None where there is none."""
    try:
        spec = importlib.util.find_spec("torch")
        root = Path(next(iter((spec and spec.submodule_search_locations) or ())))
        text = (root / "version.py").read_text(encoding="utf-8")
    except (ValueError, OSError, StopIteration):
        return None  # a stand-in without a spec, or a folder that happens to be called torch
    return TorchFacts(_field(text, "__version__"), _field(text, "git_version"), root)


def _field(text: str, name: str) -> str:
    found = re.search(rf"^{name}\b[^=]*= *'([^']*)'", text, re.MULTILINE)
    return found.group(1) if found else "unknown"


def compiler() -> list[str] | None:
    """Return the command of the C++ compiler, or None where there is none: ``$CXX`` where it is set, else g++, else clang++."""
    chosen = os.environ.get("CXX", "")
    try:
        commands = [shlex.split(chosen)] if chosen.strip() else [["g++"], ["clang++"]]
    except ValueError:  # quotes that do not close
        return None
    return next(([path, *rest] for program, *rest in commands if (path := shutil.which(program))), None)


def include_dir() -> Path:
    """Return the directory of devprof's C headers: ``#include "devprof/correlation.h"`` is found below it.

    Every `NativeBuild` has it on its include path; a package that builds with a tool of its own puts it there.
    """
    return Path(__file__).resolve().parent / "include"


def python_include() -> Path | None:
    """Return the directory of the interpreter's ``Python.h``, or None where it is not installed."""
    include = Path(sysconfig.get_path("include"))
    return include if (include / "Python.h").exists() else None


def missing(spec: NativeBuild) -> str | None:
    """Say in one sentence what keeps `spec` from being built here, or return None."""
    if sys.platform not in ("linux", "darwin"):
        return f"native libraries are built on Linux and macOS only, and this is {sys.platform}"
    if spec.needs_torch and (reason := _torch_missing()):
        return reason
    if spec.needs_python and python_include() is None:
        return f"Python {sys.version_info.major}.{sys.version_info.minor} headers (Python.h) are not installed"
    if compiler() is None:
        return _compiler_missing()
    return None


def _compiler_missing() -> str:
    if chosen := os.environ.get("CXX", "").strip():
        return f"CXX is set to {chosen!r}, and no such program was found"
    return "no C++ compiler was found: install g++ or clang++, or set CXX"


def _torch_missing() -> str | None:
    torch = torch_facts()
    if torch is None:
        return "torch is not installed in this environment"
    if not torch.has_kineto:
        return f"torch {torch.version} carries no Kineto headers (include/kineto)"
    allowed = os.environ.get("DEVPROF_ALLOW_UNTESTED_TORCH") == "1"
    if torch.minor not in TESTED_TORCH and not allowed:
        return (
            f"torch {torch.version} is not one of {', '.join(TESTED_TORCH)}: "
            "set DEVPROF_ALLOW_UNTESTED_TORCH=1 to build against it anyway"
        )
    return None
