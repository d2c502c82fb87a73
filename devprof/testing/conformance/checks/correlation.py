"""Which op and which range a record says it belongs to."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np

from devprof import correlation
from devprof.host import record_function
from devprof.model import ActivityType
from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.table import DIRECT, ON_TORCH, PYTHON_ONLY, CheckFailed, Undecided, check, expect

__all__: list[str] = []

_OP = 41
_OPS = [int(ActivityType.CPU_OP), int(ActivityType.USER_ANNOTATION)]
_BIG = (2**31 + 7, 2**32 - 1, 2**32 + 9)


def _ops(capture: Capture, n: int) -> list[list[str]]:
    """Return the names of the ops around each kernel, innermost first."""
    owners = [capture.owners(kernel.linked) for kernel in capture.delivered(n).kernels]
    if not all(owners):
        linked = all(kernel.linked for kernel in capture.seen.kernels)
        raise Undecided("C402" if linked else "C403", "kernels belong to no op that the host knows")
    return owners


def _outermost(capture: Capture, op_id: int) -> int:
    """Return the event of the outermost op around an op, on its thread."""
    trace = capture.trace
    event = int(np.flatnonzero(np.isin(trace.activity_type, _OPS) & (trace.id == op_id))[0])
    while (parent := int(trace.parent[event])) >= 0:
        event = parent
    return event


def _named(capture: Capture, names: tuple[str, ...], n: int) -> Counter[str]:
    """Count the kernels by the innermost of these ops around them."""
    owners = _ops(capture, n)
    return Counter(next((name for name in chain if name in names), "another op") for chain in owners)


@check(
    "C301",
    needs=("workload", "kernels"),
    cause="The plugin keeps the first op of a stack instead of the last, or reads the id when the kernel ends instead "
    "of when it is launched. Read `devprof.correlation.current()` at the launch.",
)
def carries_the_innermost_op(bench: Bench) -> None:
    """A kernel belongs to the innermost op that was open at its launch.

    Launches one kernel in an op, two in an op inside it, and one after that inner op has ended.
    """

    def body(capture: Capture) -> None:
        def outer() -> None:
            bench.device.launch()
            bench.launch(2, "inner")
            bench.device.launch()

        bench.in_op("outer", outer)
        bench.device.synchronize()

    found = _named(bench.session(body), ("outer", "inner"), 4)
    expect(found == {"outer": 2, "inner": 2}, expected={"outer": 2, "inner": 2}, found=dict(found))


@check(
    "C302",
    needs=("workload", "kernels"),
    cause="`linked_user` is not filled, or with the op id. It is `devprof.correlation.current().user_id` at the launch;"
    " rows of ranges on the device are made from it.",
)
def carries_the_innermost_range(bench: Bench) -> None:
    """A kernel carries the id of the user range that was open at its launch.

    Launches kernels in ops inside two user ranges, one within the other, and compares `linked_user` with the ids of the ranges.
    """

    def body(capture: Capture) -> None:
        with record_function("range 1"):
            bench.launch(1)
            with record_function("range 2"):
                bench.launch(2)
        bench.device.synchronize()

    capture = bench.session(body)
    _ops(capture, 3)
    kernels = capture.seen.kernels
    found = Counter(next(iter(capture.owners(kernel.linked_user)), "no range") for kernel in kernels)
    expect(found == {"range 1": 1, "range 2": 2}, expected={"range 1": 1, "range 2": 2}, found=dict(found))


@check(
    "C303",
    hosts=PYTHON_ONLY,
    needs=("workload", "kernels"),
    cause="The current op is kept in one variable for the whole process. Ids belong to threads: keep a stack per "
    "thread, or read `devprof.correlation` on the thread that launches.",
)
def threads_have_ids_of_their_own(bench: Bench) -> None:
    """A kernel belongs to an op of the thread that launched it.

    Two threads are inside ops of their own at the same time, and launch in turns.
    """
    turns = threading.Barrier(2)
    failed: list[BaseException] = []

    def in_turn(n: int) -> None:
        turns.wait(30)
        bench.device.launch(n)
        turns.wait(30)

    def work(name: str, n: int) -> None:
        try:
            bench.in_op(name, lambda: in_turn(n))
        except BaseException as error:  # noqa: BLE001 - raised on the main thread
            failed.append(error)
            turns.abort()

    def body(capture: Capture) -> None:
        threads = [threading.Thread(target=work, args=(f"op of thread {n}", n)) for n in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bench.device.synchronize()

    capture = bench.session(body)
    if failed:
        raise failed[0]
    names = ("op of thread 1", "op of thread 2")
    found = _named(capture, names, 3)
    expect(found == dict(zip(names, (1, 2), strict=True)), expected="1 kernel and 2 kernels", found=dict(found))


@check(
    "C304",
    hosts=DIRECT,
    needs=("workload", "kernels"),
    cause="The last id stays when the op has ended. 0 means that no op is open, and is what the record then carries.",
)
def work_outside_of_ops_has_no_id(bench: Bench) -> None:
    """A kernel that is launched outside of every op carries 0.

    Launches a kernel in an op and one after it.
    """
    session = bench.direct()
    session.start()
    session.push(_OP)
    bench.device.launch(1)
    session.pop()
    bench.device.launch(1)
    kernels = session.finish().kernels
    if len(kernels) != 2:
        raise Undecided("C401", f"{len(kernels)} kernels were delivered where 2 were launched")
    _expect_none(kernels[1].linked, _OP)


@check(
    "C305",
    hosts=DIRECT,
    needs=("workload", "kernels"),
    cause="The stack of ids outlives the session: an op that was open when the last one stopped is still on it. Begin "
    "with an empty stack in `start`.",
)
def no_id_of_an_earlier_session(bench: Bench) -> None:
    """A session knows no op of the session before.

    Stops a session inside an op; in the next one launches a kernel outside of every op, and one in an op.
    """
    first = bench.direct()
    first.start()
    first.push(_OP)
    first.finish()
    second = bench.direct()
    second.start()
    bench.device.launch(1)
    second.launch(1)
    kernels = second.finish().kernels
    correlation.new_generation()
    if len(kernels) != 2:
        raise Undecided("C401", f"{len(kernels)} kernels were delivered where 2 were launched")
    _expect_none(kernels[0].linked, _OP)


def _expect_none(linked: int, stale: int) -> None:
    if linked not in (0, stale):
        raise Undecided("C402", f"a kernel carries {linked}, which is no op id")
    expect(
        linked == 0, expected="0 on the kernel outside of every op", found=f"the id {linked} of an op that has ended"
    )


@check(
    "C306",
    hosts=DIRECT,
    needs=("workload", "kernels"),
    cause="The id goes through a number of 32 bits, signed or not. Op ids are 64 bits wide and count on through a long "
    "program.",
)
def ids_keep_all_their_bits(bench: Bench) -> None:
    """Op ids beyond 31 and 32 bits come back as they were.

    Launches kernels under the ids 2^31 + 7, 2^32 - 1 and 2^32 + 9.
    """
    session = bench.direct()
    session.start()
    for op_id in _BIG:
        session.push(op_id)
        bench.device.launch(1)
        session.pop()
    kernels = session.finish().kernels
    if len(kernels) != len(_BIG):
        raise Undecided("C401", f"{len(kernels)} kernels were delivered where {len(_BIG)} were launched")
    found = tuple(kernel.linked for kernel in kernels)
    cut = {op_id % 2**bits for op_id in _BIG for bits in (31, 32, 64)} | {op_id % 2**32 - 2**32 for op_id in _BIG}
    if not set(found) <= cut:
        raise Undecided("C402" if any(found) else "C403", f"the kernels carry {found}, which are no op ids")
    expect(found == _BIG, expected=_BIG, found=found)


@check(
    "C307",
    hosts=DIRECT,
    needs=("workload", "kernels", "pushes"),
    cause="`pop_correlation_id` takes from an empty stack. A session may start inside an op, whose end is then all that"
    " it sees.",
)
def pop_may_come_without_push(bench: Bench) -> None:
    """A pop without a push does nothing.

    Pops twice in a fresh session, then launches a kernel in an op.
    """
    session = bench.direct()
    session.start()
    try:
        session.pop_quietly()
        session.pop_quietly()
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises
        raise CheckFailed("a pop that does nothing", f"it raised {error!r}") from None
    session.launch(1)
    kernels = session.finish().kernels
    expect(len(kernels) == 1, expected="1 kernel after it", found=len(kernels))


@check(
    "C308",
    hosts=ON_TORCH,
    needs=("workload", "kernels"),
    cause="Pushed ids are kept in a `threading.local`, which is a new one at each call from a thread that Python did not "
    "start; or only for the thread that started the session. Keep them by `threading.get_native_id()`, or read "
    "`devprof.correlation` on the thread that launches.",
)
def ops_on_torchs_threads_have_their_kernels(bench: Bench) -> None:
    """A kernel belongs to its op also where torch runs the op on another thread.

    Launches one kernel and two kernels in ops that `torch.jit.fork` runs; then in ops of two threads, with
    `profile_all_threads=True`.
    """
    from devprof.torch import kit

    kit.prepare()
    _ops(bench.work(1), 1)
    for name, run, options in (
        ("torch.jit.fork", kit.run_forked, {}),
        ("profile_all_threads", kit.run_on_threads, {"experimental_config": kit.all_threads()}),
    ):

        def body(capture: Capture, run: Any = run) -> None:
            run(lambda: bench.device.launch(1), lambda: bench.device.launch(2))
            bench.device.synchronize()

        capture = bench.session(body, **options)
        kernels = capture.delivered(3).kernels
        # whether it is the innermost op is what C301 asks
        found = sorted(
            Counter(_outermost(capture, one.linked) for one in kernels if capture.owners(one.linked)).values()
        )
        expect(found == [1, 2], expected=f"1 kernel in one op and 2 in the other ({name})", found=found)
