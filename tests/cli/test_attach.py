"""``devprof attach`` on a program of its own: what it prints, where the trace goes, what it says when there is none."""

from __future__ import annotations

import json
import os
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
        command = [sys.executable, "-m", "devprof", "attach", str(program.pid), "--seconds", "50"]
        asking = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert asking.stderr is not None
        assert asking.stderr.readline() == f"process {program.pid} records ...\n"
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=60)
    assert (asking.returncode, "ended from here" in err) == (0, True), err
    assert Path(out.strip()).parent == tmp_path / "mine"


def test_a_program_that_is_killed_while_it_is_recorded_is_said_to_have_ended(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with _running(environment | {"DEVPROF_ON_DEMAND": "1"}, tmp_path) as program:
        asking = subprocess.Popen(
            [sys.executable, "-m", "devprof", "attach", str(program.pid), "-s", "50"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert asking.stderr is not None
        asking.stderr.readline()
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
        asking = subprocess.Popen(
            [sys.executable, "-m", "devprof", "attach", str(program.pid), "-s", "50"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert asking.stderr is not None
        asking.stderr.readline()
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
