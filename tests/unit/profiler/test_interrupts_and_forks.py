"""A Ctrl-C at any moment, and a fork at any moment: nothing records on, and the next profile can start."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import devprof
from devprof.capture import RECORDING
from devprof.errors import SessionError
from devprof.host.gate import GATE
from devprof.profiler import blocks, profile, schedule
from devprof.profiler.runs import PROFILES

_SUBMIT = ThreadPoolExecutor.submit
_WATCHED = tuple(
    str(Path(devprof.__file__).parent / part)
    for part in ("profiler", "capture/exclusive.py", "capture/interrupts.py", "host/recorder.py")
)


class InterruptAt:
    """Raises SIGINT at the n-th place of the profiler's own code where Python looks for signals.

    Those are the beginning of a function and the return of one that is written in C; `sys.setprofile` tells of both.
    """

    def __init__(self, number: int) -> None:
        self.left = number
        self.where = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(_WATCHED):
            return
        if event == "call" and frame.f_code.co_flags & inspect.CO_GENERATOR:
            return  # what is raised while a generator is closed is lost
        self.left -= 1
        if self.left < 0:
            sys.setprofile(None)
            self.where = f"{event} {frame.f_code.co_qualname}:{frame.f_lineno}"
            signal.raise_signal(signal.SIGINT)

    def during(self, body: Callable[[], object]) -> bool:
        """Run `body`; say whether the interrupt came, and came out."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.setprofile(self)
        try:
            body()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
            signal.signal(signal.SIGINT, before)
        return bool(self.where)


def what_is_left() -> list[str]:
    """Say what records on, or cannot record any more."""
    left = {
        "a profile runs": PROFILES.holder is not None,
        "somebody records": RECORDING.holder is not None,
        "ranges are taken": GATE.queues is not None,
        "submit is wrapped": ThreadPoolExecutor.submit is not _SUBMIT,
    }
    with profile(activities=["cpu"], host="python") as prof, devprof.record_function("next"):
        pass
    names = [prof.trace.strings[name] for name in prof.trace.name]
    return [words for words, is_so in left.items() if is_so] + [name for name in names if name != "next"]


def block() -> None:
    with profile(activities=["cpu"], host="python"), devprof.record_function("range"):
        pass


def steps() -> None:
    plan = schedule(wait=0, warmup=1, active=1)
    with profile(activities=["cpu"], host="python", schedule=plan, on_trace_ready=lambda prof: prof.trace) as prof:
        for _ in range(3):
            prof.step()


@pytest.mark.parametrize("body", [block, steps])
def test_an_interrupt_anywhere_comes_out_and_leaves_nothing_behind(body: Callable[[], object]) -> None:
    body()
    wrong: list[tuple[str, list[str]]] = []
    number = 0
    while (interrupt := InterruptAt(number)).during(body):
        assert interrupt.where, "an interrupt that nobody raised"
        wrong += [(interrupt.where, left)] if (left := what_is_left()) else []
        number += 1
    assert wrong == []
    assert number > 100


def test_an_interrupt_before_the_first_line_of_exit_leaves_the_trace_as_any_other() -> None:
    ready: list[int] = []
    prof = profile(activities=["cpu"], host="python", on_trace_ready=lambda one: ready.append(len(one.trace)))

    def in_a_block() -> None:
        with prof, devprof.record_function("range"):
            pass

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is blocks._leave.__code__:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            in_a_block()
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
    frames = [entry.name for entry in caught.traceback]
    assert frames[-2:] == ["_leave", "interrupt"]
    assert (ready, what_is_left()) == ([1], [])


def test_looking_at_exit_within_a_block_ends_nothing() -> None:
    with profile(activities=["cpu"], host="python") as prof:
        assert hasattr(prof, "__exit__")
        assert hasattr(type(prof), "__exit__")
        with devprof.record_function("range"):
            pass
    assert len(prof.trace) == 1


def test_an_exit_stack_and_calls_by_hand_are_blocks_too() -> None:
    with ExitStack() as stack:
        prof = stack.enter_context(profile(activities=["cpu"], host="python"))
    other = profile(activities=["cpu"], host="python")
    assert other.__enter__() is other
    assert PROFILES.holder is not None
    other.__exit__(None, None, None)
    assert (len(prof.trace), len(other.trace), PROFILES.holder) == (0, 0, None)


def test_an_interrupt_in_the_users_callback_is_raised_there_at_once() -> None:
    seen: list[str] = []

    def callback(prof: Any) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            seen.append("raised")
            raise

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            profile(activities=["cpu"], host="python", on_trace_ready=callback) as prof,
        ):
            pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert (seen, len(prof.trace), what_is_left()) == (["raised"], 0, [])


# -- forks -------------------------------------------------------------------------------------------------------------


def in_child(body: Callable[[], object]) -> int:
    """Run `body` in a forked child; return how that ended, 0 where it did well."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # ends a child that hangs
        code = 1
        try:
            body()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


@pytest.fixture
def running() -> Iterator[profile]:
    prof = profile(activities=["cpu"], host="python", schedule=schedule(wait=0, warmup=1, active=2))
    prof.start()
    yield prof
    prof.stop()


def test_a_child_may_go_on_with_its_loop_of_steps_and_stop_once(running: profile) -> None:
    def body() -> None:
        for _ in range(5):
            running.step()
        assert repr(running) == "<devprof.profile host='python', not started>"
        running.stop()
        with pytest.raises(SessionError, match="not running"):
            running.stop()
        assert what_is_left() == []
        running.start()
        running.step()
        running.stop()
        assert len(running.trace) == 1

    assert in_child(body) == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_does_not_wait_for_a_thread_that_was_inside_a_call_at_the_fork() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def callback(prof: Any) -> None:
        inside.set()
        go_on.wait(60)

    prof = profile(activities=["cpu"], host="python", on_trace_ready=callback)
    prof.start()
    stopping = threading.Thread(target=prof.stop)
    stopping.start()
    assert inside.wait(60)

    def body() -> None:
        prof.stop()
        prof.start()
        go_on.set()
        prof.stop()

    status = in_child(body)
    go_on.set()
    stopping.join(60)
    assert status == 0
