"""The functions that CUPTI calls, without Python: no data race, and no buffer that is anybody's but its holder's.

DEVPROF_FUZZ_S says for how many seconds each of these runs; by default a few.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest
from cuda_cupti.build_spec import CUPTI

from devprof.native.facts import compiler

SECONDS = os.environ.get("DEVPROF_FUZZ_S", "2")
DRIVER = Path(__file__).parent / "native" / "exchange_threads.cpp"


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_buffers_of_many_threads_have_one_owner_each(sanitizer: str, tmp_path: Path) -> None:
    driver = built(tmp_path, sanitizer)
    assert int(ran(driver)) > 100


def built(folder: Path, sanitizer: str) -> Path:
    command = compiler()
    if command is None:
        pytest.skip("no C++ compiler")
    made = folder / "exchange_threads"
    flags = ["-std=c++20", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-Wall", "-Wextra"]
    sources = [*map(str, CUPTI.sources), str(DRIVER)]
    command += [*flags, '-DDEVPROF_BUILD_INFO=""', *sources, "-o", str(made), "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if any(word in done.stderr for word in ("sanitize", "libasan", "libtsan", "libubsan", "_preinit")):
        pytest.skip("this compiler has no such sanitizer")
    assert (done.returncode, done.stderr) == (0, "")
    return made


def ran(driver: Path) -> str:
    # the sanitizers want the addresses that they expect; where the system lays memory out at random they may not get them
    prefix = ["setarch", platform.machine(), "-R"] if Path("/usr/bin/setarch").exists() else []
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [*prefix, str(driver), SECONDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=3600)
    if "personality" in done.stderr:  # a container that forbids it
        done = subprocess.run(command[len(prefix) :], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
