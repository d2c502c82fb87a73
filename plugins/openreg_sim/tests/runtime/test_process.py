"""One runtime per process, made as the environment says; it survives a fork, and needs no torch."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from openreg_sim.runtime import Runtime, RuntimeConfig, runtime, use_runtime


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_there_is_one_runtime_for_all_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: runtime(), range(8)))
    assert {id(one) for one in found} == {id(runtime())}


def test_a_block_may_use_another_runtime_and_gives_the_first_one_back() -> None:
    before = runtime()
    other = Runtime(RuntimeConfig.virtual_clock())

    def fail_within() -> None:
        with use_runtime(other):
            assert runtime() is other
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_within()
    assert runtime() is before


def test_the_environment_chooses_clock_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEVPROF_OPENREG_CLOCK", raising=False)
    monkeypatch.delenv("DEVPROF_OPENREG_DEVICES", raising=False)
    assert RuntimeConfig.from_environment() == RuntimeConfig()
    monkeypatch.setenv("DEVPROF_OPENREG_CLOCK", "virtual")
    monkeypatch.setenv("DEVPROF_OPENREG_DEVICES", "3")
    assert RuntimeConfig.from_environment() == RuntimeConfig.virtual_clock(device_count=3)


@pytest.mark.parametrize(("name", "value"), [("CLOCK", "fake"), ("DEVICES", "0"), ("DEVICES", "two")])
def test_an_environment_that_makes_no_sense_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"DEVPROF_OPENREG_{name}", value)
    with pytest.raises(ValueError, match=f"DEVPROF_OPENREG_{name} is '{value}'; expected"):
        RuntimeConfig.from_environment()


def test_the_truth_is_bounded_and_says_what_it_forgot() -> None:
    small = Runtime(RuntimeConfig.virtual_clock(truth_calls=3))
    for _ in range(5):
        small.launch("k")
    assert small.ground_truth()["correlation"].tolist() == [3, 4, 5]
    assert small.forgotten_calls == 2
    small.forget_truth()
    assert (len(small.ground_truth()), small.forgotten_calls) == (0, 0)


def test_the_runtime_and_the_plugin_load_no_torch() -> None:
    assert _run("import sys, openreg_sim.plugin, openreg_sim.activity; print('torch' in sys.modules)") == "False\n"


FORK = """
import os, threading
from openreg_sim.runtime import runtime
r = runtime()
r.launch("parent")
stop = threading.Event()
def hammer():
    while not stop.is_set():
        r.launch("hammer")
thread = threading.Thread(target=hammer)
thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        r.launch("child")
        r.stream_query()
        mine = int(r.ground_truth()["thread_id"][-1]) == os.getpid()
        os._exit(0 if mine else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork, and thread numbers as Linux gives them")
def test_a_child_of_a_fork_finds_no_lock_held_and_its_own_thread() -> None:
    assert _run(FORK) == "done\n"
