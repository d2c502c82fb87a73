"""From a kernel to its launch and its op, and the arrows between them."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from devprof import rules
from devprof.capture import UNKNOWN_OP
from devprof.model import ActivityType, Role
from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.table import Undecided, check, expect
from devprof.testing.conformance.watching import Watched

__all__: list[str] = []

_HOST_KINDS = (Role.LAUNCH, Role.SYNC, Role.OVERHEAD)


def _in_three_ops(bench: Bench) -> Capture:
    def body(capture: Capture) -> None:
        for n in (1, 2, 3):
            bench.launch(n, f"op with {n}")
        bench.device.synchronize()

    return bench.session(body)


def _under_another_kind(seen: Watched, n: int) -> dict[str, int]:
    """Return kinds under which n device records came that are no kernels."""
    kinds = Counter(one.activity_type for one in seen.records() if one.activity_type not in _RUNTIMES)
    return {kind.name: count for kind, count in kinds.items() if kind is not _KERNEL and count >= n}


_KERNEL = ActivityType.CONCURRENT_KERNEL
_RUNTIMES = (ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.CUDA_RUNTIME)


@check(
    "C401",
    needs=("workload", "kernels"),
    cause="Too few: the buffers are not flushed at the stop, or the device is not waited for. Too many: a buffer is "
    "decoded twice, or the same kernel comes from two sources; its time then counts twice.",
)
def each_kernel_is_delivered_once(bench: Bench) -> None:
    """Every kernel that is launched is delivered exactly once.

    Launches one, two and three kernels in three ops, and counts the records.
    """
    seen = _in_three_ops(bench).seen
    if not seen.kernels and (others := _under_another_kind(seen, 6)):
        raise Undecided("C406", f"the device's records came as {others}")
    expect(len(seen.kernels) == 6, expected="6 kernels", found=f"{len(seen.kernels)} kernels")


@check(
    "C402",
    needs=("workload", "kernels"),
    cause="`linked` holds the device's own number of the launch. That number is `id`; `linked` is "
    "`devprof.correlation.current().op_id`, read at the launch.",
)
def links_are_op_ids(bench: Bench) -> None:
    """What a kernel is linked to is an op of this session.

    Launches kernels in three ops, and looks up the op id of each record.
    """
    capture = _in_three_ops(bench)
    linked = [one.linked for one in capture.delivered(6).kernels if one.linked]
    strange = [op_id for op_id in linked if not capture.owners(op_id)]
    noted = capture.ledger.notes[UNKNOWN_OP]
    expect(not strange and not noted, expected="ids of ops of this session", found=f"the ids {strange} of no op")


@check(
    "C403",
    needs=("workload", "kernels"),
    cause="`linked` is never filled, so device time is 0 for every op. Read `devprof.correlation.current()` at the "
    "launch, or return an external-correlation record from the vendor's library.",
)
def kernels_in_ops_are_linked(bench: Bench) -> None:
    """A kernel that was launched in an op is linked to one.

    Launches kernels in three ops, and counts those that belong to none.
    """
    capture = _in_three_ops(bench)
    loose = sum(not one.linked for one in capture.delivered(6).kernels)
    expect(loose == 0 or capture.ledger.linked == 6, expected="6 linked kernels", found=f"{loose} that carry 0")


@check(
    "C404",
    needs=("workload", "kernels", "runtime calls"),
    cause="The launch and the kernel carry different numbers, or none. `id` is the device's correlation number: the "
    "same on both, and on no other launch. Arrows are drawn from it.",
)
def launch_and_kernel_share_a_number(bench: Bench) -> None:
    """A kernel and the call that launched it carry one number, which no other launch has.

    Launches kernels in three ops, and looks for the launch of each kernel.
    """
    seen = _in_three_ops(bench).delivered(6)
    launches = Counter(one.id for one in seen.launches)
    alone = [one.id for one in seen.kernels if launches[one.id] == 0 or not one.id]
    shared = sorted({one.id for one in seen.kernels if launches[one.id] > 1})
    expect(bool(launches), expected="calls of the runtime", found="none, though the plugin claims them")
    expect(not alone, expected="a launch for each of 6 kernels", found=f"none for the kernels numbered {alone}")
    expect(not shared, expected="one launch per number", found=f"several for the numbers {shared}")


@check(
    "C405",
    needs=("workload", "kernels", "runtime calls", "graph"),
    cause="Each node of a graph got a number of its own. All carry the number of the one launch; a node's own number "
    "goes into `metadata` as 'graph node id'.",
)
def one_launch_may_have_many_kernels(bench: Bench) -> None:
    """All kernels of a graph carry the number of the one call that launched it.

    Launches a graph of four kernels in an op.
    """

    def body(capture: Capture) -> None:
        bench.in_op("graph", lambda: bench.device.call("graph", "conformance", 4))
        bench.device.synchronize()

    seen = bench.session(body).delivered(4)
    numbers = {one.id for one in seen.kernels}
    launches = sum(one.id in numbers for one in seen.launches)
    if not launches:
        raise Undecided("C404", "no call has the number of a kernel")
    expect(
        len(numbers) == 1 and launches == 1,
        expected="4 kernels with the number of 1 launch",
        found=f"{len(numbers)} numbers and {launches} launches",
    )


@check(
    "C406",
    needs=("workload", "kernels"),
    cause="The record of the kernel has a kind that means a call on the host, such as PRIVATEUSE1_DRIVER. Such records "
    "do not count as device time. Work on the device is CONCURRENT_KERNEL, GPU_MEMCPY or GPU_MEMSET, whoever made"
    " the device.",
)
def device_work_has_a_kind_of_device_work(bench: Bench) -> None:
    """Work on the device does not come as a call of the host's.

    Launches six kernels and looks for records of other kinds in their place.
    """
    seen = _in_three_ops(bench).seen
    others = {} if seen.kernels else _under_another_kind(seen, 6)
    expect(not others, expected="6 records of kind CONCURRENT_KERNEL", found=f"{others} in their place")


@check(
    "C407",
    needs=("workload", "kernels", "runtime calls"),
    cause="`thread_id` is 0, a pthread handle or a number of the vendor's own. It is the system's native id "
    "(`threading.get_native_id()`, `gettid`) of the thread that called.",
)
def calls_stand_on_their_thread(bench: Bench) -> None:
    """A call of the runtime carries the native id of the thread that made it.

    Launches kernels on this thread, and compares the ids.
    """
    seen = _in_three_ops(bench).delivered(6)
    numbers = {one.id for one in seen.kernels}
    found = {one.thread_id for one in seen.launches if one.id in numbers}
    if not found:
        raise Undecided("C404", "no call has the number of a kernel")
    here = threading.get_native_id()
    expect(found == {here}, expected=f"thread {here}", found=sorted(found))


@check(
    "C408",
    needs=("workload", "kernels", "runtime calls"),
    cause="The plugin draws arrows of its own (`flow`) and uses a key twice, or only one end of it. Leave `flow` out: "
    "devprof draws arrows from `id`.",
)
def arrows_leave_a_launch_and_arrive(bench: Bench) -> None:
    """Every kernel has one arrow, which leaves its launch.

    Launches kernels in three ops; looks at the arrows in the trace, and at ends that devprof had to leave out.
    """
    capture = _in_three_ops(bench)
    seen = capture.delivered(6)
    launches = {one.id for one in seen.launches}
    if not all(one.id in launches for one in seen.kernels):
        raise Undecided("C404", "kernels have no launch")
    notes = capture.ledger.notes
    left_out = {text: notes[text] for text in _ARROW_NOTES if notes[text]}
    broken = [str(one) for one in rules.check(capture.trace) if one.rule in ("flows.paired", "flows.host")]
    without = [e for e in capture.kernels(6) if not capture.trace.flow_id[e]]
    expect(
        not left_out and not broken and not without,
        expected="one arrow to each of 6 kernels",
        found="; ".join([*broken, *(f"{count} {text}" for text, count in left_out.items()), f"{len(without)} without"]),
    )


@check(
    "C409",
    needs=("workload", "kernels", "runtime calls"),
    cause="`id` is counted per stream, queue or device, so two launches have one number, and one gets the other's kernel. "
    "Put the stream and the device into the number, such as `stream << 48 | ticket`.",
)
def numbers_are_of_one_launch_wherever_it_goes(bench: Bench) -> None:
    """Two launches have two numbers, on whichever stream and device they are.

    Launches two kernels on the first stream, two on the second and two on the second device, as far as the workload has these,
    and compares the numbers.
    """
    further: list[dict[str, Any]] = [{key: 1} for key in ("stream", "device") if bench.device.fact(f"{key}s", 1) >= 2]
    bench.need("a workload with streams = 2 or more, or devices = 2 or more", bool(further))
    places = [{}, *further] * 2

    def body(capture: Capture) -> None:
        for place in places:
            bench.launch(1, **place)
        bench.device.synchronize()

    n = len(places)
    seen = bench.session(body).delivered(n)
    launches = Counter(one.id for one in seen.launches)
    if not all(launches[one.id] for one in seen.kernels):
        raise Undecided("C404", "kernels have no launch")
    numbers = [one.id for one in seen.kernels]
    expect(len(set(numbers)) == n, expected=f"{n} numbers for {n} launches", found=f"the numbers {numbers}")


_ARROW_NOTES = ("second start of an arrow left out", "arrow end without the other left out")
