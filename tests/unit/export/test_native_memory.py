"""The native writer stays inside its memory, whatever it is given: random chunks, whole and damaged, under sanitizers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from devprof.export.build_spec import CHROME
from devprof.native.facts import compiler

DRIVER = Path(__file__).parent / "csrc/random_chunks.cpp"
SANITIZED = ["-std=c++20", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CHUNKS = 3_000


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("driver") / "random_chunks"
    command = compiler()
    if command is None:
        pytest.skip("needs a C++ compiler")
    probe = program.with_suffix(".cpp")
    probe.write_text("int main() { return 0; }\n")
    if subprocess.run([*command, *SANITIZED, str(probe), "-o", str(program)], capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    sources = [
        str(path) for path in CHROME.sources if path.name != "json.cpp"
    ]  # what the library exports is not needed
    include = f"-I{CHROME.include_dirs[0]}"
    subprocess.run([*command, *SANITIZED, include, *sources, str(DRIVER), "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize("seed", [1, 2])
def test_random_chunks_are_written_or_refused_and_no_sanitizer_complains(driver: Path, seed: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([driver, str(seed), str(CHUNKS)], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{CHUNKS} written, ")
