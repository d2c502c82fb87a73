"""On a machine with an NVIDIA GPU the smoke test passes, elsewhere its modes do on a stand-in; it never passes for nothing."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cuda_cupti.decode import merged
from cuda_cupti.output import to_batches

from devprof.model import ActivityType
from plugins.cuda_cupti.tests.golden_runs import golden_run
from tests.gpu.cupti_smoke import LIMITS_S, MOST_S, PROOFS_S, failures, last_state, not_proved, run_program, summary

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("cupti_smoke.py")
FOLDERS = ("", "plugins/cuda_cupti", "tests/gpu", "plugins/cuda_cupti/tests/session/support")
NEEDS_CUDA = {"beside_torch", "kineto_cost", "base"}
"""Modes that are about another profiler, or none."""
HELD = {"facts": {}, "checks": {"kernels": True}}


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def run_script(*modes: str, timeout: int = 60, **environment: str) -> tuple[int, dict[str, Any], str]:
    """Run the smoke test; return its exit code, its summary and its stderr."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *modes],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | environment,
    )
    text = done.stdout[done.stdout.index("\n{\n") :]
    return done.returncode, json.loads(text), done.stderr


def run_on_stand_in(mode: str, out: Path) -> dict[str, Any]:
    path = os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("without_gpu.py")), mode],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"OUT": str(out), "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return last_state(done.stdout)


@pytest.mark.gpu
@pytest.mark.skipif(not _has_driver(), reason="needs an NVIDIA GPU and its driver")
def test_the_plugin_does_on_a_real_gpu_what_it_promises() -> None:
    code, said, _ = run_script(timeout=240)
    assert (said["failed"], code in (0, 2)) == ([], True)
    if code:
        pytest.skip(f"not proved here: {'; '.join(said['not_proved'])}")


@pytest.mark.parametrize("mode", sorted(LIMITS_S.keys() - NEEDS_CUDA))
def test_the_modes_of_the_script_find_their_own_checks_kept_on_a_stand_in(mode: str, tmp_path: Path) -> None:
    result = run_on_stand_in(mode, tmp_path)
    assert (failures(result), not_proved(mode, result)) == ([], [])
    assert result["checks"], result


def test_the_buffers_that_the_script_writes_are_read_back_as_a_golden_run(tmp_path: Path) -> None:
    result = run_on_stand_in("golden", tmp_path)
    (name,) = [path.stem for path in tmp_path.glob("*.json")]
    run = golden_run(name, tmp_path)
    whole = merged(run.records())
    assert [len(one) for one in run.buffers] == result["facts"]["bytes"]
    assert (whole.n_bytes, whole.lost_bytes, whole.stops) == (sum(map(len, run.buffers)), 0, ())
    assert {str(int(kind)): len(rows) for kind, rows in whole.of.items()} == run.about["counts"]
    assert (run.facts.name, run.facts.uuid, run.about["launched"], run.kineto) == ("Stand-in GPU", "", 106, {})
    batches = to_batches(run.records(), {0: run.facts}).batches
    found = [activity for batch in batches for activity in batch.activities()]
    kernels = [one for one in found if one.activity_type is ActivityType.CONCURRENT_KERNEL]
    low, high = run.about["window"]
    assert all(low <= one.start_ns < one.end_ns <= high for one in kernels)
    assert {one.activity_name for one in kernels} == {
        "void devprof_axpy<float>(float*, float, int)",
        "devprof_smem",
        "node",
    }
    # no kernel is in the outer one of two ranges, and one is in none
    assert {(one.linked, one.thread_id) for one in kernels if one.linked} < set(map(tuple, run.about["pushes"]))


@pytest.mark.parametrize(
    ("mode", "fault", "missed"),
    [
        ("late", "LIBRARY.waits_in_vain = True", "the late kernel is in the trace once"),
        ("late", "LIBRARY.spin = lambda ns: LIBRARY.kernel('devprof_spin')", "it has its whole duration"),
        ("golden", "LIBRARY.fail['cuptiActivityEnable', K.CUDA_EVENT] = 1", "Event Sync: names a recording"),
        ("golden", "LIBRARY.fail['cuptiActivityEnable', K.SYNCHRONIZATION] = 1", "Stream Wait Event: there is one"),
        ("facts", "LIBRARY.functions['cuptiGetTimestamp'] = lambda found: 0", "CUPTI's clock is the host's"),
    ],
)
def test_a_mode_notices_what_a_library_does_not_do(mode: str, fault: str, missed: str) -> None:
    folders = [str(ROOT / folder) for folder in FOLDERS]
    program = f"import sys; sys.path[:0] = {folders}; from without_gpu import *; {fault}; main({mode!r})"
    result = run_program(program, 60)
    assert [said for said in failures(result) if said.startswith(missed)], result


def test_without_a_driver_the_script_says_so_and_fails_in_order() -> None:
    if _has_driver():
        pytest.skip("this machine has an NVIDIA driver")
    code, said, errors = run_script("facts")
    assert (code, said["ok"], errors) == (1, False, "")
    assert "no NVIDIA driver here" in said["failed"][0]


def test_where_a_module_is_missing_or_broken_nothing_is_ok_and_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libcudart.so.12: no such file')")
    code, said, _ = run_script("base", "memory", "late", "kineto_cost", PYTHONPATH=str(tmp_path))
    missing = "cupy is missing (ImportError: libcudart.so.12: no such file)"
    assert (code, said["ok"], said["failed"]) == (2, False, [])
    assert said["not_proved"] == [f"memory: {missing}", f"late: {missing}", "nothing was checked"]
    assert "libcudart" in said["modes"]["base"]["facts"]["missing"]["cupy"]
    assert "libcudart" in said["modes"]["kineto_cost"]["facts"]["missing"]["cupy"]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ({}, (2, [], ["nothing was checked"])),
        ({"cupy": HELD}, (0, [], [])),
        ({"base": {"facts": {"launch_us": 3.0}}}, (2, [], ["nothing was checked"])),
        ({"cupy": HELD, "base": {"facts": {}}, "kineto_cost": {"skipped": "no time left"}}, (0, [], [])),
        ({"cupy": HELD, "conform": {"skipped": "no time left"}}, (2, [], ["conform: no time left"])),
        ({"cupy": HELD, "memory": {"facts": {}, "checks": {}}}, (2, [], ["memory: nothing was checked"])),
        ({"cupy": HELD, "native": {"facts": {"not built": "no compiler"}}}, (0, [], [])),
        ({"cupy": HELD, "native": {"facts": {}}}, (2, [], ["native: nothing was checked"])),
        (
            {"cupy": HELD, "beside_torch": {"facts": {"missing": {"torch": "ModuleNotFoundError: No module"}}}},
            (2, [], ["beside_torch: torch is missing (ModuleNotFoundError: No module)"]),
        ),
        (
            {"cupy": {"error": "did not end", "checks": {"kernels": "expected 1, found 2"}}},
            (1, ["cupy: did not end", "cupy: kernels: expected 1, found 2"], []),
        ),
    ],
)
def test_only_what_was_tried_and_held_is_ok(
    results: dict[str, Any], expected: tuple[int, list[str], list[str]]
) -> None:
    text, code = summary(results, 1.0)
    said = json.loads(text)
    assert (code, said["failed"], said["not_proved"]) == expected
    assert said["ok"] is (code == 0)


def test_a_mode_that_hangs_keeps_its_checks_and_says_where_it_hangs() -> None:
    program = (
        "import smoke_tools, sys, time, types\n"
        "def mode():\n"
        "    smoke_tools.FACTS['launched'] = 3\n"
        "    smoke_tools.check('kernels', 3, 3)\n"
        "    smoke_tools.check('copies', 1, 2)\n"
        "    print('{\"cut off', flush=True)\n"
        "    time.sleep(60)\n"
        "sys.modules['hanging'] = types.ModuleType('hanging')\n"
        "sys.modules['hanging'].mode, smoke_tools.MODULES = mode, ('hanging',)\n"
        "smoke_tools.run('mode', 3)\n"
    )
    result = run_program(program, 6)
    assert result["facts"] == {"launched": 3}
    assert result["checks"] == {"kernels": True, "copies": "expected 2, found 1"}
    assert "did not end within 6 s" in result["error"]
    assert "in mode" in result["error"], result["error"]
    assert failures(result)[1:] == ["copies: expected 2, found 1"]


def test_a_mode_that_crashes_keeps_its_checks() -> None:
    result = run_program("import os, smoke_tools; smoke_tools.check('kernels', 3, 3); os.abort()", 30)
    assert result["checks"] == {"kernels": True}
    assert "exit code -6" in result["error"]


def test_a_check_that_failed_once_stays_failed() -> None:
    program = "from smoke_tools import check; check('a', 1, 2); check('a', 2, 2)"
    assert run_program(program, 30)["checks"] == {"a": "expected 2, found 1"}


def test_all_proofs_have_their_time_even_where_each_takes_all_of_it() -> None:
    assert sum(PROOFS_S.values()) <= MOST_S < 180


def test_a_forked_child_that_dies_without_a_word_is_no_refusal_and_does_not_hang() -> None:
    program = (
        "import os, smoke_beside, smoke_tools\n"
        "smoke_beside._say_refusal = lambda writing: os._exit(1)\n"
        "smoke_beside._check_fork()\n"
    )
    result = run_program(program, 20)
    assert result["checks"] == {"a forked child is refused": "expected True, found False"}
