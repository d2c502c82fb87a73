"""`devprof record`, `replay` and `conform --record`: a file from where the device is, judged where it is not."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from devprof.replay import load
from tests.cli.command import devprof as command

CONFORMANCE = Path(__file__).parents[1] / "conformance"
GOLDEN = Path(__file__).parents[1] / "recordings"

PROGRAM = """
import sys
import devprof
from openreg_sim.runtime import runtime

with devprof.record_function("a secret name"):
    runtime().launch("gemm", flops=1e6)
    runtime().launch("relu", flops=1e5)
runtime().device_synchronize()
print("done", sys.argv[1:])
"""


devprof = partial(
    command, PYTHONPATH=os.pathsep.join([str(CONFORMANCE), *filter(None, [os.environ.get("PYTHONPATH")])])
)


def test_a_program_is_recorded_and_replayed_without_its_device(tmp_path: Path) -> None:
    pytest.importorskip("openreg_sim", reason="the simulated device is not installed")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = devprof("record", "--plugin", "openreg", "--host", "python", "program.py", "--fast", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done ['--fast']\n"), done.stderr
    assert "5 records of openreg, 1 ranges of the host" in done.stderr
    recording = load(tmp_path / "program.devrec")
    assert recording.sessions[0].host.names == ("range 1",)
    assert b"secret" not in (tmp_path / "program.devrec").read_bytes()

    blocked = {"DEVPROF_BLOCK_PLUGINS": "openreg"}
    done = devprof("replay", "program.devrec", "-o", "again.json", cwd=tmp_path, **blocked)
    assert done.returncode == 0, done.stderr
    assert (
        "openreg replayed: produced 5 = emitted 5 + dropped 0 + rejected 0; 2 of 2 device records linked" in done.stdout
    )
    kernels = [
        one for one in json.loads((tmp_path / "again.json").read_text())["traceEvents"] if one.get("cat") == "kernel"
    ]
    assert [one["name"] for one in kernels] == ["gemm", "relu"]


def test_a_program_that_fails_is_recorded_and_has_its_exit_code(tmp_path: Path) -> None:
    pytest.importorskip("openreg_sim", reason="the simulated device is not installed")
    (tmp_path / "program.py").write_text(f"{PROGRAM}\nraise SystemExit(7)\n", encoding="utf-8")
    done = devprof("record", "--plugin", "openreg", "--host", "python", "-o", "x.devrec", "program.py", cwd=tmp_path)
    assert done.returncode == 7
    assert len(load(tmp_path / "x.devrec").sessions) == 1


def test_a_replay_with_a_fault_says_what_is_lost_with_exit_code_1(tmp_path: Path) -> None:
    done = devprof("replay", GOLDEN / "two_devices.devrec", "-f", "drop-told:2", "--json", cwd=tmp_path)
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    assert facts["clean"] is False
    (ledger,) = (
        facts["report"]["plugins"].values() if "plugins" in facts["report"] else facts["report"]["ledgers"].values()
    )
    assert ledger["dropped"] == {"lost by the replay, on request": 2}


def test_a_replay_whose_work_has_other_numbers_than_its_launches_says_so_with_exit_code_1(tmp_path: Path) -> None:
    done = devprof("replay", GOLDEN / "two_devices.devrec", "-f", "launch-ids", cwd=tmp_path)
    assert done.returncode == 1
    said = "none of its 4 numbered device records has the number of one of its 4 numbered calls"
    assert said in done.stdout
    assert done.stderr.startswith("devprof replay:0: LossWarning: devprof: openreg replayed: " + said)


def test_faults_may_come_with_commas(tmp_path: Path) -> None:
    done = devprof("replay", GOLDEN / "two_devices.devrec", "-f", "drop-told:2,no-ids", "--json", cwd=tmp_path)
    (ledger,) = json.loads(done.stdout)["report"]["plugins"].values()
    assert ledger["dropped"] == {"lost by the replay, on request": 2}
    assert (ledger["device_work"], ledger["linked"]) == (2, 0)


PROFILES_ITSELF = """
import devprof
with devprof.profile(host="python"):
    pass
"""


@pytest.mark.parametrize("command", ["run", "record"])
def test_a_program_that_profiles_itself_is_told_who_does_already(tmp_path: Path, command: str) -> None:
    pytest.importorskip("openreg_sim", reason="the simulated device is not installed")
    (tmp_path / "program.py").write_text(PROFILES_ITSELF, encoding="utf-8")
    words = ["--plugin", "openreg"] if command == "record" else []
    done = devprof(command, *words, "--host", "python", "program.py", cwd=tmp_path)
    assert done.returncode == 1
    assert f"is running already, started by `devprof {command}` (it profiles the whole program) on" in done.stderr
    assert not (tmp_path / "program.devrec").exists()


def test_a_program_that_profiles_itself_with_a_schedule_of_torchs_is_told_once(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="this is about torch as a host")
    pytest.importorskip("openreg_sim", reason="the simulated device is not installed")
    program = """
from torch.profiler import ProfilerActivity, profile, schedule
plan = schedule(wait=1, warmup=1, active=1)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], schedule=plan) as prof:
    prof.step()
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = devprof("record", "--plugin", "openreg", "program.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1, done.stderr
    assert "already recording on this thread, begun by `devprof record` (it profiles the whole program)" in done.stderr


def test_a_recording_of_nothing_is_not_written(tmp_path: Path) -> None:
    pytest.importorskip("openreg_sim", reason="the simulated device is not installed")
    (tmp_path / "program.py").write_text("print('nothing')", encoding="utf-8")
    done = devprof("record", "--plugin", "openreg", "--host", "python", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "nothing\n")
    assert done.stderr.splitlines()[-1] == "devprof: openreg delivered no record, so there is nothing to save"
    assert not (tmp_path / "program.devrec").exists()


def test_the_faults_are_listed(tmp_path: Path) -> None:
    done = devprof("replay", "--list-faults", cwd=tmp_path)
    assert done.returncode == 0
    assert "drop           every N-th device record is lost, and nothing says so (usually 3)" in done.stdout


def test_a_run_of_the_kit_is_recorded_and_judged_again(tmp_path: Path) -> None:
    plugin = ["cli_toy:right", "--workload", "cli_toy:Workload", "--host", "python", "--only", "C3", "--only", "C4"]
    done = devprof("conform", *plugin, "--record", "toy.devrec", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sessions of toy" in done.stderr
    again = devprof("conform", "toy.devrec", "--host", "python", "--only", "C3", "--only", "C4", cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.splitlines()[-1] == "toy, recorded: 15 of 15 checks hold, 1 skipped"
    broken = devprof("conform", "toy.devrec", "--only", "C402", "--host", "python", "-f", "wrong-ids", cwd=tmp_path)
    assert broken.returncode == 1
    assert broken.stdout.splitlines()[-2].strip() == "explained by: devprof conform --explain C402"


def test_a_run_of_the_kit_under_torch_is_judged_again_under_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="this is about torch as a host")
    pytest.importorskip("openreg_sim", reason="the simulated device is not installed")
    only = ["--only", "C3", "--only", "C4", "--only", "C5", "--only", "C7"]
    done = devprof("conform", "openreg", *only, "--record", "kit.devrec", cwd=tmp_path)
    if "(torch host)" not in done.stdout:
        pytest.skip("the simulated device is not built")
    assert done.returncode == 0, done.stdout
    done = devprof("conform", "kit.devrec", *only, "--host", "torch", cwd=tmp_path)
    held = int(done.stdout.splitlines()[-1].split()[2])
    assert (done.returncode, held >= 25) == (0, True), done.stdout


def test_a_check_is_explained_where_there_is_no_page(tmp_path: Path) -> None:
    done = devprof("conform", "--explain", "c402", cwd=tmp_path)
    assert done.returncode == 0
    first, *rest = done.stdout.splitlines()
    assert first == "C402 What a kernel is linked to is an op of this session."
    assert any(line.startswith("Where it fails: `linked` holds the device's own number") for line in rest)


def test_wrong_use_is_one_line_with_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("no")
    for words, says in (
        (["replay", "nowhere.devrec"], "there is no file nowhere.devrec"),
        (["replay", "text.txt"], "cannot read text.txt as a devprof recording"),
        (["replay", GOLDEN / "two_devices.devrec", "-f", "burn"], "there is no fault 'burn'"),
        (
            ["replay", GOLDEN / "two_devices.devrec", "-f", "clock-step:50"],
            "let the recorded clock run with --live-clock",
        ),
        (["replay", GOLDEN / "two_devices.devrec", "--session", "2"], "has 1 session(s), and not 2"),
        (["conform", GOLDEN / "two_devices.devrec"], "the recording is of a program, and the kit needs one of itself"),
        (["conform", "cli_toy:right", "-f", "drop"], "faults are injected into a recorded run"),
        (["conform"], "say which plugin"),
        (["conform", "--explain", "C777"], "there is no check C777"),
        (["record", "--plugin", "no-such", "text.txt"], "no profiler named 'no-such'"),
        (["record", "nowhere.py"], "there is no file nowhere.py"),
    ):
        done = devprof(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert says in done.stderr, words
        assert "Traceback" not in done.stderr, words
