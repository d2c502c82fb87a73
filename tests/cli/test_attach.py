"""``devprof attach`` on a program of its own: what it prints, where the trace goes, what it says when there is none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import devprof

WORK = """
import sys, devprof
with devprof.record_function("begin"):
    print("ready", flush=True)
while not sys.stdin.closed:
    with devprof.record_function("work"):
        sum(range(1000))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="dv") as sockets:  # pytest's own are too long for a socket
        ours = {name: value for name, value in os.environ.items() if not name.startswith("DEVPROF_")}
        yield ours | {"DEVPROF_RUNTIME_DIR": f"{sockets}/run", "DEVPROF_BLOCK_PLUGINS": "openreg"}


@contextmanager
def _running(environment: dict[str, str], folder: Path, program: str = WORK) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def _asking(environment: dict[str, str], pid: int) -> subprocess.Popen[str]:
    """Ask for a recording that is longer than any test, and return once the program records."""
    command = [sys.executable, "-m", "devprof", "attach", str(pid), "-s", "50"]
    asking = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert asking.stderr is not None
    assert asking.stderr.readline() == f"process {pid} records ...\n"
    return asking


def _attach(environment: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devprof", "attach", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_program_that_opted_in_by_its_environment_is_recorded_and_the_path_is_all_of_stdout(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with _running(environment | {"DEVPROF_ON_DEMAND": "1"}, tmp_path) as program:
        listed = _attach(environment)
        done = _attach(environment, program.pid, "--seconds", 0.2)
        moved = _attach(environment, program.pid, "-s", 0.2, "-o", tmp_path / "here.json", "--json")
    assert listed.stdout.split()[0] == str(program.pid)
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert path.parent == tmp_path / "devprof-traces"
    trace = devprof.load(path)
    assert {trace.strings[i] for i in trace.name.tolist()} == {"work"}
    assert "recorded by python; the time was over" in done.stderr
    answer = json.loads(moved.stdout)
    assert (answer["path"], answer["ended_by"], answer["host"]) == (str(tmp_path / "here.json"), "time", "python")
    assert len(devprof.load(tmp_path / "here.json")) > 0
    assert list((tmp_path / "devprof-traces").iterdir()) == [path]


def test_ctrl_c_ends_the_recording_and_the_trace_is_there(environment: dict[str, str], tmp_path: Path) -> None:
    with _running(environment | {"DEVPROF_ON_DEMAND": str(tmp_path / "mine")}, tmp_path) as program:
        asking = _asking(environment, program.pid)
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=60)
    assert (asking.returncode, "ended from here" in err) == (0, True), err
    assert Path(out.strip()).parent == tmp_path / "mine"


def test_a_program_that_is_killed_while_it_is_recorded_is_said_to_have_ended(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with _running(environment | {"DEVPROF_ON_DEMAND": "1"}, tmp_path) as program:
        asking = _asking(environment, program.pid)
        program.kill()
        err = asking.communicate(timeout=60)[1]
    assert asking.returncode == 2
    assert err == f"devprof: process {program.pid} ended while it recorded; there is no trace\n"
    assert "devprof: no such process" in _attach(environment, program.pid).stderr


def test_a_program_that_ends_by_itself_writes_what_was_recorded(environment: dict[str, str], tmp_path: Path) -> None:
    program_text = """
import sys, devprof
with devprof.record_function("begin"):
    print("ready", flush=True)
sys.stdin.readline()
with devprof.record_function("last"):
    pass
"""
    with _running(environment | {"DEVPROF_ON_DEMAND": "1"}, tmp_path, program_text) as program:
        asking = _asking(environment, program.pid)
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
        out, err = asking.communicate(timeout=60)
        assert program.wait(timeout=60) == 0
    assert "the program ended" in err
    trace = devprof.load(out.strip())
    assert [trace.strings[i] for i in trace.name.tolist()] == ["last"]


def test_a_program_that_did_not_opt_in_or_is_switched_off_is_said_how_to(
    environment: dict[str, str], tmp_path: Path
) -> None:
    for more in ({}, {"DEVPROF_ON_DEMAND": "1", "DEVPROF_DISABLE": "1"}):
        with _running(environment | more, tmp_path) as program:
            done = _attach(environment, program.pid)
        assert done.returncode == 2
        assert f"process {program.pid} is not listening: a program opts in with DEVPROF_ON_DEMAND=1" in done.stderr


def test_a_request_at_the_very_end_of_a_program_leaves_its_words_and_exit_code_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The listener's thread is still there while Python ends, when nothing can be imported that starts pools any more."""
    program_text = """
import threading, sys, devprof
from devprof.trigger import CaptureRequest, attach
listener = devprof.on_demand(sys.argv[1], host="python", activities=["cpu"])
def ask():
    threading.main_thread().join()
    import os
    try:
        print(attach(os.getpid(), CaptureRequest(seconds=5)).ended_by)
    except Exception as error:
        print(error)
    sys.stdout.flush()
threading.Thread(target=ask).start()
print("main ends", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", program_text, tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    words, pid_and_words = done.stdout.splitlines()
    assert (words, pid_and_words.partition(": ")[2]) == ("main ends", "the program is ending")


def test_a_training_program_on_a_device_is_recorded_for_whole_steps(
    environment: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the program trains with torch")
    pytest.importorskip("openreg_sim", reason="it trains on the simulated device")
    training = """
import torch
model = torch.nn.Linear(16, 4).to("openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 16, device="openreg")
print("ready", flush=True)
while True:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""
    with _running(environment | {"DEVPROF_ON_DEMAND": "1", "DEVPROF_BLOCK_PLUGINS": ""}, tmp_path, training) as program:
        done = _attach(environment, program.pid, "--steps", 3, "--json")
        again = _attach(environment, program.pid, "--seconds", 0.1, "-o", tmp_path / "again.json.gz")
        assert program.poll() is None
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr
    answer = json.loads(done.stdout)
    assert (answer["steps"], answer["ended_by"], answer["host"]) == (3, "steps", "torch")
    trace = devprof.load(answer["path"])
    names = [trace.name_of(event) for event in range(len(trace))]
    launches = names.count("orLaunchKernel")
    assert launches
    assert launches % 3 == 0
    assert names.count("aten::addmm") >= 3
    ledger = trace.facts["report"]["plugins"]["openreg"]
    assert ledger["device_work"] == ledger["linked"] > 0
    assert len(devprof.load(tmp_path / "again.json.gz")) > 0


def test_another_user_is_told_whose_process_it_is_and_sees_nobody(environment: dict[str, str], tmp_path: Path) -> None:
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    reaches = [*nobody, sys.executable, "-c", "import devprof.trigger"]
    if shutil.which("setpriv") is None or subprocess.run(reaches, capture_output=True, check=False).returncode:
        pytest.skip("needs root, setpriv, and a Python and devprof that any user can reach")
    with _running(environment | {"DEVPROF_ON_DEMAND": "1"}, tmp_path) as program:
        command = [*nobody, sys.executable, "-m", "devprof", "attach", str(program.pid)]
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
        listed = subprocess.run(command[:-1], env=environment, cwd="/", capture_output=True, text=True, check=False)
        (socket_path,) = Path(environment["DEVPROF_RUNTIME_DIR"]).iterdir()
        knock = f"import socket; socket.socket(socket.AF_UNIX).connect({str(socket_path)!r})"
        knocked = subprocess.run([*nobody, sys.executable, "-c", knock], capture_output=True, text=True, check=False)
    assert (done.returncode, listed.returncode) == (2, 2)
    assert done.stderr == (
        f"devprof: process {program.pid} belongs to user {os.geteuid()}; only that user can attach, and this is user 65534\n"
    )
    assert "is not this user's" in listed.stderr
    assert knocked.stderr.endswith("PermissionError: [Errno 13] Permission denied\n")
    assert not (tmp_path / "devprof-traces").exists()


def test_ctrl_c_before_a_step_comes_leaves_the_program_as_it_was(environment: dict[str, str], tmp_path: Path) -> None:
    telling = """
import threading, devprof
with devprof.record_function("begin"):
    print("ready", flush=True)
while "devprof-capture" not in {thread.name for thread in threading.enumerate()}:
    pass
print("asked", flush=True)
threading.Event().wait()
"""
    with _running(environment | {"DEVPROF_ON_DEMAND": "1"}, tmp_path, telling) as program:
        command = [sys.executable, "-m", "devprof", "attach", str(program.pid), "--steps", "5"]
        asking = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        assert program.stdout is not None
        assert program.stdout.readline() == "asked\n"
        busy = _attach(environment, program.pid, "-s", 0.01)
        assert "already profiling: another `devprof attach` is under way" in busy.stderr
        asking.send_signal(signal.SIGINT)
        err = asking.communicate(timeout=60)[1]
        after = _attach(environment, program.pid, "-s", 0.01)
    assert (asking.returncode, "nothing was recorded: the capture was ended" in err) == (2, True), err
    assert after.returncode == 0, after.stderr


def test_workers_that_a_data_loader_forks_are_well_while_their_parent_is_recorded(
    environment: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the program loads data with torch")
    loading = """
import sys, torch
data = torch.utils.data.DataLoader(torch.arange(64.0), batch_size=4, num_workers=2)
print("ready", flush=True)
sys.stdin.readline()
print(sum(float(batch.sum()) for _ in range(2) for batch in data), flush=True)
"""
    with _running(environment | {"DEVPROF_ON_DEMAND": "1"}, tmp_path, loading) as program:
        asking = _asking(environment, program.pid)
        out = program.communicate("\n", timeout=120)[0]
        path, err = asking.communicate(timeout=120)
    assert (out, program.returncode) == (f"{2 * sum(range(64)):.1f}\n", 0)
    assert "the program ended" in err
    trace = devprof.load(path.strip())
    assert "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" in {
        trace.name_of(event) for event in range(len(trace))
    }
