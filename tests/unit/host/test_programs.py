"""Any program of ranges, on any threads and in any order of leaving, is recorded as a simple model says."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devprof import correlation
from devprof.host import HostOptions, HostRecorder, RecordFunction, record_function, report_memory
from tests.unit.host.recordings import Ticks

THREADS = 3


@dataclass
class Worker:
    """A thread that does one thing at a time, so that a program on several threads has one order."""

    asked: queue.SimpleQueue[Callable[[], Any] | None] = field(default_factory=queue.SimpleQueue)
    done: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (job := self.asked.get()) is not None:
            self.done.put(job())

    def do(self, job: Callable[[], Any]) -> Any:
        self.asked.put(job)
        return self.done.get(timeout=60)

    def end(self) -> None:
        self.asked.put(None)
        self.thread.join(60)


@dataclass
class Open:
    """A range of the model."""

    id: int
    user_id: int
    is_user: bool
    thread: int
    start: int
    parent: int
    parent_user: int
    end: int | None = None
    end_thread: int | None = None


class Model:
    """Each thread has a list of open ranges; leaving takes a range out of the list of the thread where it began."""

    def __init__(self) -> None:
        self.ticks = 1
        self.stacks: list[list[Open]] = [[] for _ in range(THREADS)]
        self.all: list[Open] = []
        self.memory: list[tuple[int, int, int]] = []
        self.is_on = True

    def current(self, thread: int) -> tuple[int, int]:
        stack = self.stacks[thread]
        return (stack[-1].id, stack[-1].user_id) if stack else (0, 0)

    def tick(self) -> int:
        self.ticks += 1
        return self.ticks

    def enter(self, thread: int, id: int, is_user: bool) -> Open:
        parent, parent_user = self.current(thread)
        entered = Open(id, id if is_user else parent_user, is_user, thread, self.tick(), parent, parent_user)
        self.stacks[thread].append(entered)
        self.all.append(entered)
        return entered

    def leave(self, thread: int, entered: Open) -> None:
        entered.end = self.tick()
        self.stacks[entered.thread].remove(entered)
        if thread != entered.thread:
            entered.end_thread = thread


actions = st.one_of(
    st.tuples(st.just("enter"), st.integers(0, THREADS - 1), st.booleans()),
    st.tuples(st.just("leave"), st.integers(0, THREADS - 1), st.integers(0, 5)),
    st.tuples(st.just("leave own"), st.integers(0, THREADS - 1), st.integers(0, 1)),
    st.tuples(st.just("memory"), st.integers(0, THREADS - 1), st.just(0)),
    st.tuples(st.just("toggle"), st.just(0), st.booleans()),
)


class Program:
    """Runs actions on the recorder and on the model."""

    def __init__(self, recorder: HostRecorder, workers: list[Worker]) -> None:
        self.recorder, self.workers, self.model = recorder, workers, Model()
        self.open: list[tuple[Any, Open]] = []
        self.unrecorded: list[Any] = []

    def run(self, action: str, thread: int, choice: int) -> None:
        worker = self.workers[thread]
        if action == "enter":
            made = record_function("user") if choice else RecordFunction("op")
            worker.do(made.__enter__)
            if self.model.is_on:
                self.open.append((made, self.model.enter(thread, made.id, bool(choice))))
        elif action == "leave" and self.open:
            made, entered = self.open.pop(choice % len(self.open))
            self._leave(thread, made, entered)
        elif action == "leave own" and (own := [each for each in self.open if each[1].thread == thread]):
            each = own[-1 - choice % len(own)]
            self.open.remove(each)
            self._leave(thread, *each)
        elif action == "memory":
            worker.do(lambda: report_memory(1, 1, 1, 1, "cpu"))
            if self.model.is_on:
                self.model.memory.append((thread, self.model.tick(), self.model.current(thread)[0]))
        elif action == "toggle":
            self.recorder.toggle(bool(choice))
            self.model.is_on = bool(choice)
        assert tuple(worker.do(correlation.current)) == self.model.current(thread)

    def _leave(self, thread: int, made: Any, entered: Open) -> None:
        self.workers[thread].do(lambda: made.__exit__(None, None, None))
        self.model.leave(thread, entered)


@settings(max_examples=150, deadline=None)
@given(st.lists(actions, max_size=60))
def test_any_program_is_recorded_as_the_model_says(steps: list[tuple[str, int, int]]) -> None:
    workers = [Worker() for _ in range(THREADS)]
    native_ids = [worker.do(threading.get_native_id) for worker in workers]
    recorder = HostRecorder(HostOptions(profile_memory=True), clock_ticks=Ticks())
    recorder.start()
    try:
        program = Program(recorder, workers)
        for step in steps:
            program.run(*step)
    finally:
        recording = recorder.stop()
        for made, entered in program.open:  # too late to be recorded, as at the end of a real program
            workers[entered.thread].do(lambda made=made: made.__exit__(None, None, None))
        for worker in workers:
            worker.end()
    stopped = program.model.tick()
    assert recording.stopped_ticks == stopped
    batch = recording.ranges
    found = {
        activity.id: (
            activity.start_ns,
            activity.end_ns,
            activity.linked,
            activity.linked_user,
            activity.thread_id,
            activity.activity_name,
            activity.metadata,
        )
        for activity in batch.activities()
    }
    assert found == {
        entered.id: (
            entered.start,
            stopped if entered.end is None else entered.end,
            entered.parent,
            entered.parent_user,
            native_ids[entered.thread],
            "user" if entered.is_user else "op",
            {
                **({"finished": False} if entered.end is None else {}),
                **({} if entered.end_thread is None else {"End thread": native_ids[entered.end_thread]}),
            },
        )
        for entered in program.model.all
    }
    by_thread = [batch.id[batch.thread_id == native_id].tolist() for native_id in native_ids]
    assert by_thread == [[e.id for e in program.model.all if e.thread == thread] for thread in range(THREADS)]
    memory = sorted((a.start_ns, a.thread_id, a.linked) for a in recording.memory.activities())
    assert memory == [(tick, native_ids[thread], owner) for thread, tick, owner in program.model.memory]
