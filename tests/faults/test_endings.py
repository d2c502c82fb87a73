"""However a program ends or is cut while a profile runs: what is defined is what happens, and no more is lost than must be."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import devprof
from devprof.errors import CaptureError, SessionError
from devprof.profiler import schedule

Started = Callable[..., devprof.profile]
"""Fixture `started`: make a profile of the host's side under either host."""

BEFORE = """
import os, signal, sys, devprof
prof = devprof.profile(activities=["cpu"], host="python")
prof.start()
with devprof.record_function("work"):
    pass
"""
ENDS = {
    "end of the program": ("", 0),
    "sys.exit": ("sys.exit(7)", 7),
    "an exception": ("raise ValueError('the program\\'s own')", 1),
    "os._exit": ("os._exit(5)", 5),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


@pytest.mark.parametrize(("ending", "status"), ENDS.values(), ids=ENDS)
def test_a_program_that_ends_in_a_profile_ends_as_without_one(tmp_path: Path, ending: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + ending], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    complaints = [line for line in done.stderr.splitlines() if "devprof" in line]
    assert complaints == []
    assert (done.stderr.splitlines()[-1:] == ["ValueError: the program's own"]) == (status == 1)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=["torch", "python"])
def started(request: pytest.FixtureRequest) -> Started:
    """Make a profile of the host's side under either host."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="the other host is torch")
    return lambda **options: devprof.profile(activities=["cpu"], host=request.param, **options)


def _names(prof: devprof.profile) -> list[str]:
    trace = prof.trace
    return [name for event in range(len(trace)) if not (name := trace.name_of(event)).startswith("ProfilerStep")]


def test_an_exception_in_on_trace_ready_reaches_the_program_and_costs_neither_this_trace_nor_the_next(
    started: Started,
) -> None:
    seen: list[list[str]] = []

    def broken(prof: devprof.profile) -> None:
        seen.append(_names(prof))
        if len(seen) == 1:
            raise ValueError("no place to put it")

    prof = started(schedule=schedule(wait=0, warmup=0, active=1, repeat=2), on_trace_ready=broken)
    prof.start()
    with devprof.record_function("first"):
        pass
    with pytest.raises(ValueError, match="no place to put it"):
        prof.step()
    assert _names(prof) == ["first"]
    with devprof.record_function("second"):
        pass
    prof.stop()
    assert seen == [["first"], ["second"]]
    with started() as after, devprof.record_function("after"):
        pass
    assert _names(after) == ["after"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_in_a_profile_leaves_the_parents_whole_and_the_childs_copy_empty(
    started: Started,
) -> None:
    with started() as prof:
        with devprof.record_function("before"):
            pass
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with devprof.record_function("in the child"):
                    pass
                prof.stop()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with devprof.record_function("after"):
            pass
    assert _names(prof) == ["before", "after"]


def test_a_pipe_whose_reader_has_gone_is_said_in_words_and_the_trace_can_be_written_elsewhere(tmp_path: Path) -> None:
    with devprof.profile(activities=["cpu"], host="python") as prof:
        for _ in range(2000):
            with devprof.record_function("work"):
                pass
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(["head", "-c", "10", str(pipe)], stdout=subprocess.DEVNULL),
        pytest.raises(CaptureError, match=r"cannot write .*pipe: Broken pipe"),
    ):
        prof.export_chrome_trace(str(pipe))
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    assert len(json.loads((tmp_path / "t.json").read_text())["traceEvents"]) > 2000


def test_a_pipe_that_is_full_is_waited_for_and_gets_all(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import devprof
        with devprof.profile(activities=["cpu"], host="python") as prof:
            for _ in range(2000):
                with devprof.record_function("work"):
                    pass
        prof.export_chrome_trace("/dev/stdout")
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=tmp_path) as program:
        assert program.stdout is not None
        first = program.stdout.read(1)  # the rest is more than a pipe holds, so the program waits here
        assert program.poll() is None
        text = first + program.stdout.read()
    assert program.returncode == 0
    assert len(json.loads(text)["traceEvents"]) > 2000


# -- servers: start and stop in handlers -------------------------------------------------------------------------------


def test_start_and_stop_in_handlers_of_one_event_loop_work_under_both_hosts(
    started: Started,
) -> None:
    async def serve() -> devprof.profile:
        running: list[devprof.profile] = []

        async def start() -> None:
            running.append(started())
            running[0].start()

        async def request(number: int) -> None:
            with devprof.record_function(f"request {number}"):
                pass

        async def stop() -> None:
            running[0].stop()

        for handler in (start(), request(1), request(2), stop()):
            await asyncio.create_task(handler)
        return running[0]

    assert _names(asyncio.run(serve())) == ["request 1", "request 2"]


def _from_a_pool(started: Started) -> tuple[Any, devprof.profile]:
    prof = started()
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        first.submit(prof.start).result()
        with devprof.record_function("request"):
            pass
        error = second.submit(prof.stop).exception()
        if error is not None:
            first.submit(prof.stop).result()
    return error, prof


def test_start_and_stop_on_two_threads_of_a_pool_work_without_torch_and_are_refused_in_words_with_it(
    started: Started,
) -> None:
    error, prof = _from_a_pool(started)
    if "host='python'" in repr(prof):
        assert error is None
        assert _names(prof) == ["request"]
    else:
        assert isinstance(error, SessionError)
        assert "thread" in str(error)
    with started() as after, devprof.record_function("after"):
        pass
    assert _names(after) == ["after"]


def test_a_second_start_from_a_pool_is_told_who_records_and_disturbs_nobody(
    started: Started,
) -> None:
    with started() as prof, ThreadPoolExecutor(4) as pool:
        errors = [pool.submit(started().start).exception() for _ in range(8)]
        with devprof.record_function("request"):
            pass
    assert [type(error) for error in errors] == [SessionError] * 8
    assert all(__file__ in str(error) for error in errors)
    assert _names(prof) == ["request"]
