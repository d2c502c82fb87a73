"""From a real recorder to a trace: pools, tasks, threads, functions, memory, what was left open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from devprof.clock import HostClock
from devprof.host import HostOptions, HostRecorder, RecordFunction, RecordScope, record_function, report_memory
from devprof.model import ActivityType
from devprof.pipeline import assemble
from devprof.store import Trace
from tests.unit.pipeline.recordings import tree


def recorded(program: Callable[[], object], **options: bool) -> Trace:
    clock = HostClock.started()
    recorder = HostRecorder(HostOptions(**options))
    start_ns = clock.now_ns()
    recorder.start()
    try:
        program()
    finally:
        end_ns = clock.now_ns()
        recording = recorder.stop()
    return assemble(recording, [], clock=clock, window_start_ns=start_ns, window_end_ns=end_ns)


def named(trace: Trace, name: str) -> int:
    (event,) = trace.named(name)
    return int(event)


def work() -> None:
    with RecordFunction("work"):
        pass


def test_work_in_a_pool_hangs_on_the_range_that_submitted_it_and_stands_on_its_own_thread() -> None:
    def program() -> None:
        with record_function("step"), ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
            pool.submit(work).result()

    trace = recorded(program)
    assert tree(trace) == {"step": None, "work": "step"}
    assert [trace.rows[row].name.split(" ", 2)[2] for row in trace.row.tolist()] == ["(MainThread)", "(pool_0)"]
    assert trace.linked_user[named(trace, "work")] == trace.id[named(trace, "step")]


def test_tasks_that_take_turns_on_a_thread_keep_their_own_ranges() -> None:
    async def task(name: str, turn: asyncio.Event, other: asyncio.Event) -> None:
        with record_function(name):
            other.set()
            await turn.wait()
            with record_function(f"inside {name}"):
                await asyncio.sleep(0)

    async def both() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        await asyncio.gather(task("a", first, second), task("b", second, first))

    trace = recorded(lambda: asyncio.run(both()))
    assert tree(trace) == {"a": None, "b": None, "inside a": "a", "inside b": "b"}


def test_a_backward_op_on_another_thread_gets_the_arrow_from_its_forward_op() -> None:
    def backward(forward_thread: int) -> None:
        with RecordFunction("backward", RecordScope.BACKWARD_FUNCTION, sequence_nr=4, forward_thread_id=forward_thread):
            pass

    def program() -> None:
        with RecordFunction("forward", sequence_nr=4):
            pass
        other = threading.Thread(target=backward, args=(threading.get_native_id(),))
        other.start()
        other.join()

    trace = recorded(program)
    forward, backward_op = named(trace, "forward"), named(trace, "backward")
    assert (trace.flow_id[forward], trace.flow_id[backward_op]) == (1, 1)
    assert (trace.flow_start[forward], trace.flow_start[backward_op]) == (1, 0)
    assert (trace.flow_type[forward], trace.flow_type[backward_op]) == (1, 1)


def test_functions_and_ranges_alternate_in_one_tree() -> None:
    def layer() -> None:
        with RecordFunction("linear"):
            report_memory(64, 512, 512, 1024, "toy:0")

    def train() -> None:
        with record_function("step"):
            layer()

    trace = recorded(train, with_stack=True, profile_memory=True)

    def path(event: int) -> list[str]:
        names = []
        while event >= 0:
            names.append(trace.name_of(event))
            event = int(trace.parent[event])
        return [name for name in names if "): " not in name or name.endswith((": layer", ": train"))]

    memory = trace.of_type(ActivityType.CPU_INSTANT_EVENT).tolist()
    assert [[name.split("): ")[-1] for name in path(event)] for event in memory] == [
        ["[memory]", "linear", "layer", "step", "train"]
    ]


def test_what_was_open_at_the_stop_ends_with_the_window() -> None:
    left_open = record_function("left open")
    trace = recorded(left_open.__enter__)
    event = named(trace, "left open")
    assert (trace.end_ns[event], trace.item("finished", event)) == (trace.window_end_ns, False)
    left_open.__exit__(None, None, None)
