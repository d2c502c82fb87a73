"""Programs that drive native code under sanitizers of memory and of undefined behaviour."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from devprof.contract import NativeBuild
from devprof.native.facts import compiler

_FLAGS = ("-std=c++20", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def built(spec: NativeBuild, driver: Path, folder: Path, *, without: tuple[str, ...]) -> Path:
    """Return a program made of a library's sources and a driver; skip where there is no compiler or it has no sanitizers.

    Args:
        spec: the library.
        driver: source of the program.
        folder: where to build.
        without: sources of what the library exports, which is not needed.
    """
    command = compiler()
    if command is None:
        pytest.skip("needs a C++ compiler")
    program = folder / driver.stem
    probe = program.with_suffix(".cpp")
    probe.write_text("int main() { return 0; }\n")
    if subprocess.run([*command, *_FLAGS, str(probe), "-o", str(program)], capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    sources = [str(path) for path in spec.sources if path.name not in without]
    includes = [f"-I{path}" for path in spec.include_dirs]
    subprocess.run([*command, *_FLAGS, *includes, *sources, str(driver), "-o", str(program)], check=True)
    return program


def said(program: Path, *arguments: object) -> str:
    """Run a program, which must end well and be silent on stderr, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
