"""What runs on op threads without Python: no data race under many threads, no step outside of its memory whatever it is given.

DEVPROF_FUZZ_S says for how many seconds each of these runs; by default a few.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from devprof.native.facts import compiler, include_dir

ROOT = Path(__file__).parents[2]
SECONDS = os.environ.get("DEVPROF_FUZZ_S", "2")
BRIDGE, DEVICE = ROOT / "devprof/torch/csrc", ROOT / "plugins/openreg_sim/openreg_sim/csrc"
SOURCES = [BRIDGE / "stacks.cpp", BRIDGE / "interrupt.cpp", Path(__file__).with_name("stacks_and_ring.cpp")]
INCLUDES = [BRIDGE, include_dir(), DEVICE]


def built(
    folder: Path,
    sanitizer: str,
    sources: Sequence[Path] = SOURCES,
    includes: Sequence[Path] = INCLUDES,
    others: Sequence[Path] = (),
) -> Path:
    """Return the driver under a sanitizer; the test is skipped where the compiler has none.

    Args:
        folder: where to build.
        sanitizer: its name, as compilers have it.
        sources: of the program, the driver last.
        includes: folders of headers.
        others: the same, of headers that may be warned of.
    """
    command = compiler()
    if command is None:
        pytest.skip("no C++ compiler")
    made = folder / sources[-1].stem
    flags = ["-std=c++20", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-Wall", "-Wextra"]
    folders = [*(f"-I{path}" for path in includes), *(f"-isystem{path}" for path in others)]
    command += [*flags, *folders, *map(str, sources), "-o", str(made), "-ldl", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if any(
        word in done.stderr for word in ("sanitize", "libasan", "libtsan", "libubsan", "tsan_preinit", "asan_preinit")
    ):
        pytest.skip("this compiler has no such sanitizer")
    assert (done.returncode, done.stderr) == (0, "")
    return made


def ran(driver: Path, *words: str) -> int:
    """Run the driver; return how many calls it made."""
    # the sanitizers want the addresses that they expect; where the system lays memory out at random they may not get them
    prefix = ["setarch", platform.machine(), "-R"] if Path("/usr/bin/setarch").exists() else []
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [*prefix, str(driver), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=3600)
    if "personality" in done.stderr:  # a container that forbids it
        done = subprocess.run(command[len(prefix) :], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)


def test_many_threads_on_stacks_and_ring_race_nowhere_and_lose_nothing(tmp_path: Path) -> None:
    assert ran(built(tmp_path, "thread"), "threads", SECONDS) > 1000


def test_random_calls_of_the_c_abi_answer_as_a_model_does_and_stay_in_their_memory(tmp_path: Path) -> None:
    driver = built(tmp_path, "address,undefined")
    assert [ran(driver, "calls", SECONDS, seed) > 1000 for seed in ("1", "2")] == [True, True]
