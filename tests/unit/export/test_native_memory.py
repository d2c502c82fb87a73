"""The native writers stay inside their memory, whatever they are given: random traces, whole and damaged, under sanitizers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from devprof.export.build_spec import EXPORT
from devprof.native.facts import compiler

HERE = Path(__file__).parent / "csrc"
SANITIZED = ["-std=c++20", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
WHAT_PYTHON_CALLS = ("json.cpp", "pftrace.cpp")
CHUNKS = 3_000


@pytest.fixture(scope="module", params=["random_chunks", "random_perfetto"])
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("driver") / str(request.param)
    command = compiler()
    if command is None:
        pytest.skip("needs a C++ compiler")
    probe = program.with_suffix(".cpp")
    probe.write_text("int main() { return 0; }\n")
    if subprocess.run([*command, *SANITIZED, str(probe), "-o", str(program)], capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    sources = [str(path) for path in EXPORT.sources if path.name not in WHAT_PYTHON_CALLS]
    include = f"-I{EXPORT.include_dirs[0]}"
    own = str(HERE / f"{request.param}.cpp")
    subprocess.run([*command, *SANITIZED, include, *sources, own, "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize("seed", [1, 2])
def test_random_traces_are_written_or_refused_and_no_sanitizer_complains(driver: Path, seed: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([driver, str(seed), str(CHUNKS)], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{CHUNKS} written, ")
