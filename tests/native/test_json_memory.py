"""The native decoder reads and writes its own memory only, whatever it is given: edited traces under the compiler's sanitizers.

DEVPROF_FUZZ_S says for how many seconds; by default a few.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from devprof.native.facts import compiler
from devprof.store.readers import JSON
from tests.unit.readers.test_fuzzed_files import EVENTS

_SECONDS = os.environ.get("DEVPROF_FUZZ_S", "3")
_FLAGS = ["-std=c++20", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall", "-Wextra"]


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    command = compiler()
    if command is None:
        pytest.skip("no C++ compiler")
    made = tmp_path / "json_fuzz"
    sources = [str(path) for path in JSON.sources if path.name != "json.cpp"]
    includes = [f"-I{path}" for path in JSON.include_dirs]
    fuzz = str(Path(__file__).with_name("json_fuzz.cpp"))
    command += [*_FLAGS, *JSON.flags, *includes, *sources, fuzz, "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "sanitize" in done.stderr or "asan" in done.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert (done.returncode, done.stderr) == (0, "")
    return made


def test_edited_traces_never_make_the_decoder_leave_its_memory(driver: Path, tmp_path: Path) -> None:
    nested = {
        "ph": "X",
        "name": "\u20ac\U0001f600\n",
        "args": {"a": [[1, {"b": [None, True, -0.5e-3]}], []], "c": 2**70},
    }
    corpus = [tmp_path / name for name in ("events", "spaced", "nested")]
    corpus[0].write_text(json.dumps(EVENTS, separators=(",", ":"))[1:-1])
    corpus[1].write_text(json.dumps(EVENTS, indent=2)[1:-1])
    corpus[2].write_text(",".join(json.dumps(nested, ensure_ascii=escaped) for escaped in (True, False)))
    command = [str(driver), _SECONDS, "1", *map(str, corpus)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = re.fullmatch(r"(\d+) (\d+)\n", done.stdout)
    assert found
    tried, taken = map(int, found.groups())
    assert 0 < taken < tried
