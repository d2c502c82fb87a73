"""The three usual silent failures each give one warning with the cause at the end of an ordinary session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devprof import correlation
from devprof.analysis import key_averages
from devprof.errors import LossWarning
from devprof.export import chrome_trace
from devprof.host import RecordFunction
from devprof.model import ActivityType, GenericTraceActivity
from devprof.pipeline.files import load
from devprof.profiler import profile
from devprof.registry import register, unregister
from devprof.rules import check
from devprof.store import Trace
from devprof.testing import ScriptedProfiler, plugin_of

KERNEL, COPY, CALL, DRIVER = (
    ActivityType.CONCURRENT_KERNEL,
    ActivityType.GPU_MEMCPY,
    ActivityType.PRIVATEUSE1_RUNTIME,
    ActivityType.PRIVATEUSE1_DRIVER,
)
Script = Callable[[int, int], list[GenericTraceActivity]]


def session(script: Script, ops: list[int] | None = None) -> Trace:
    """Run an ordinary session with a plugin that delivers this; `ops` gets the ids of its two ops."""
    trace: Trace = profiled(script, ops).trace
    return trace


def no_mistake(script: Script, ops: list[int] | None = None) -> None:
    """Run such a session, of whose plugin nothing bad is said."""
    account = profiled(script, ops).report.ledgers["npu"]
    assert (account.doubts, account.failures, account.emitted > 0) == ([], [], True)


def profiled(script: Script, ops: list[int] | None) -> Any:
    register(plugin_of(ScriptedProfiler("npu", script=script)), "npu")
    try:
        with profile(activities=["cpu", "npu"], host="python") as prof:
            for name in ("op", "another op"):
                with RecordFunction(name):
                    if ops is not None:
                        ops.append(correlation.current_op_id())
                    end_ns = time.time_ns() + 100_000
                    while time.time_ns() < end_ns:
                        pass
    finally:
        unregister("npu")
    return prof


def call(at: int, end: int | None = None, **fields: Any) -> GenericTraceActivity:
    fields = {"thread_id": 5, **fields}
    return GenericTraceActivity(fields.pop("kind", CALL), "launch", at, at + 10 if end is None else end, **fields)


def test_the_vendors_number_in_place_of_the_op_id() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        return [GenericTraceActivity(KERNEL, "gemm", start + n, start + n + 1, id=n, linked=10**6 + n) for n in (1, 2)]

    with pytest.warns(
        LossWarning, match=r"0 of 2 device records linked to an op; most likely the records carry another id"
    ):
        session(script)


def test_what_no_op_owns_is_owned_by_none_in_any_file_of_the_trace(tmp_path: Path) -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        at = (start + end) // 2
        wrong = GenericTraceActivity(CALL, "launch", at, at + 10, thread_id=main, id=1, linked=10**6)
        return [wrong, GenericTraceActivity(KERNEL, "gemm", at + 20, at + 50, id=1, linked=10**6)]

    main = threading.get_native_id()
    register(plugin_of(ScriptedProfiler("npu", script=script)), "npu")
    try:
        with pytest.warns(LossWarning), profile(activities=["cpu", "npu"], host="python") as prof, RecordFunction("op"):
            time.sleep(0.001)
    finally:
        unregister("npu")
    for name, write in (("t.devprof", prof.trace.save), ("t.json", partial(chrome_trace, prof.trace))):
        write(tmp_path / name)
        trace = load(tmp_path / name)
        assert trace.linked[trace.named("gemm")] == 0, name
        owned = {row.key: row.device_time_total_ns for row in key_averages(trace) if row.device_type == "cpu"}
        assert owned["op"] == 0, name
        assert list(trace.facts["report"]["plugins"]) == ["npu"], name  # type: ignore[index]


@pytest.mark.parametrize("kind", [DRIVER, CALL], ids=lambda kind: kind.name)
@pytest.mark.parametrize("resource", [0, 3])
def test_device_work_under_a_kind_that_means_a_call(kind: ActivityType, resource: int) -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        work = [
            GenericTraceActivity(kind, "gemm", start + 100 * n, start + 100 * n + 50, id=n, resource=resource)
            for n in (1, 2)
        ]
        return [*(call(start + 100 * n - 20, id=n) for n in (1, 2)), *work]

    with pytest.warns(LossWarning, match=rf"it delivered 2 records of kind {kind.name} that are on a device or begin"):
        session(script)


def test_kernels_under_a_kind_that_means_a_call_beside_copies_that_are_right() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        copy = GenericTraceActivity(COPY, "copy", start + 40, start + 90, id=1)
        gemm = GenericTraceActivity(DRIVER, "gemm", start + 25, start + 20_000, id=2)
        return [call(start + 1, id=1), copy, call(start + 20, id=2), gemm]

    with pytest.warns(
        LossWarning, match=r"it delivered 1 records of kind PRIVATEUSE1_DRIVER that go on after the call"
    ):
        session(script)


def test_calls_and_work_without_any_number() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        return [call(start + 1), GenericTraceActivity(KERNEL, "gemm", start + 20, start + 30)]

    with pytest.warns(LossWarning, match=r"its 1 calls and 1 device records all carry `id` 0 and `linked` 0"):
        session(script)


def queued(start: int) -> list[GenericTraceActivity]:
    """Two launches, one per queue and each the first of it, and kernels that start when both have been called."""
    kernels = [GenericTraceActivity(KERNEL, "gemm", start + 60, start + 90, id=1, resource=queue) for queue in (0, 1)]
    return [call(start + 1, id=1), call(start + 20, id=1), *kernels]


def test_a_number_that_is_counted_per_queue() -> None:
    with pytest.warns(
        LossWarning, match=r"1 of its calls carry the number of an earlier call, .* put the queue into it"
    ):
        session(lambda start, end: queued(start))


def test_a_doubt_is_found_in_the_saved_trace_too() -> None:
    with pytest.warns(LossWarning):
        trace = session(lambda start, end: queued(start))
    (found,) = (one for one in check(trace) if one.rule == "account.doubts")
    assert found.says.startswith("npu: 1 of its calls carry the number of an earlier call")


def test_work_that_names_another_op_than_its_launch() -> None:
    ops: list[int] = []

    def script(start: int, end: int) -> list[GenericTraceActivity]:
        other = GenericTraceActivity(KERNEL, "gemm", start + 30, start + 40, id=1, linked=ops[1])
        return [call(start + 1, id=1, linked=ops[0]), other]

    with pytest.warns(LossWarning, match=r"1 of its 1 device records name another op in `linked` than the call"):
        session(script, ops)


def orphans(ops: list[int], *, calls: int) -> Script:
    """Two kernels of an op, whose numbers no call has."""

    def script(start: int, end: int) -> list[GenericTraceActivity]:
        kernels = [
            GenericTraceActivity(KERNEL, "gemm", start + at, start + at + 9, id=100 + at, linked=ops[0])
            for at in (50, 70)
        ]
        return [*(call(start + 20 * n, id=n) for n in range(1, calls + 1)), *kernels]

    return script


def test_work_of_the_sessions_ops_without_any_launch_beside_calls() -> None:
    ops: list[int] = []
    with pytest.warns(
        LossWarning, match=r"none of its 2 numbered device records has the number of one of its 2 numbered"
    ):
        session(orphans(ops, calls=2), ops)


def test_calls_that_are_too_few_to_be_the_launches_are_other_calls() -> None:
    ops: list[int] = []
    no_mistake(orphans(ops, calls=1), ops)


def test_work_from_before_the_session_has_no_launch_and_that_is_no_mistake() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        return [
            call(start + 1, id=9),
            call(start + 20, id=10),
            GenericTraceActivity(KERNEL, "old", start + 2, start + 9, id=3),
        ]

    no_mistake(script)


def test_late_work_of_the_session_before_is_no_mistake() -> None:
    """Its op is that session's; it began before this one's window, and its launch is not here."""
    ops: list[int] = []
    no_mistake(lambda start, end: [call(start + 10, id=5, linked=ops[0])], ops)
    no_mistake(
        lambda start, end: [
            GenericTraceActivity(KERNEL, "late", start - 500, start + 3000, id=5, linked=ops[0]),
            GenericTraceActivity(KERNEL, "later", start + 3000, start + 3500, id=5, linked=ops[0]),
            call(start + 10, id=6),
        ],
        ops,
    )


def graphs(numbers: list[int], ops: list[int]) -> Script:
    """Launches of graphs with two kernels, each by a call of the runtime that makes one of the driver."""

    def script(start: int, end: int) -> list[GenericTraceActivity]:
        records = []
        for at, number in enumerate(numbers):
            ids: dict[str, Any] = {"id": number, "linked": ops[-1]}
            begin = start + 1000 * at
            records += [call(begin, begin + 100, **ids), call(begin + 10, begin + 90, kind=DRIVER, **ids)]
            records += [GenericTraceActivity(KERNEL, "k", begin + 200 + n, begin + 201 + n, **ids) for n in (0, 50)]
        return records

    return script


@pytest.mark.parametrize("numbers", [[7, 8], [7, 1 << 56 | 7], [1 << 62, 1 << 62 | 1 << 61]], ids=str)
def test_numbers_that_differ_in_their_highest_bits_alone_are_different(numbers: list[int]) -> None:
    ops: list[int] = []
    no_mistake(graphs(numbers, ops), ops)


def test_records_that_come_twice_have_no_other_mistake_even_where_calls_take_no_time() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        once = [
            record
            for n in (1, 2, 3)
            for record in (
                call(start + n * 1000, start + n * 1000, id=n),
                GenericTraceActivity(KERNEL, "k", start + n * 1000 + 200, start + n * 1000 + 210, id=n),
            )
        ]
        return [*once, *once]

    with pytest.warns(LossWarning, match="6 of 12 records had been delivered already") as caught:
        session(script)
    assert "carry the number" not in str(caught[0].message)


def test_launches_of_one_number_on_two_threads_are_two_however_their_times_lie() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        calls = [call(start, start + 100, id=7, thread_id=1), call(start + 10, start + 50, id=7, thread_id=2)]
        return [*calls, *(GenericTraceActivity(KERNEL, "k", start + at, start + at + 9, id=7) for at in (200, 300))]

    with pytest.warns(LossWarning, match="1 of its calls carry the number of an earlier call"):
        session(script)


def test_calls_within_each_other_and_queries_and_graphs_share_a_number_and_are_no_mistake() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        graph = GenericTraceActivity(CALL, "graph launch", start + 1, start + 50, thread_id=5, id=1)
        inner = [call(start + at, id=1) for at in (5, 20)]
        below = GenericTraceActivity(DRIVER, "submit", start + 55, start + 58, id=1, thread_id=5)  # on another clock
        nodes = [GenericTraceActivity(KERNEL, "node", start + at, start + at + 9, id=1) for at in (60, 80)]
        plain = [call(start + 100, id=2), GenericTraceActivity(KERNEL, "gemm", start + 130, start + 140, id=2)]
        return [graph, *inner, below, *nodes, *plain, call(start + 115, id=2), call(start + 200, id=1)]

    no_mistake(script)


def test_calls_alone_and_driver_calls_below_runtime_calls_are_no_mistake() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        below = GenericTraceActivity(DRIVER, "submit", start + 2, start + 5, id=1, thread_id=5)
        return [call(start + 1, id=1), below, call(start + 50, id=2), call(start + 70)]

    no_mistake(script)


def test_beside_work_driver_calls_below_runtime_calls_are_no_mistake_nor_a_slow_one_that_has_work() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        below = GenericTraceActivity(DRIVER, "submit", start + 2, start + 5, id=1, thread_id=5)
        slow = GenericTraceActivity(DRIVER, "submit", start + 25, start + 20_000, id=2, thread_id=5)
        work = [GenericTraceActivity(COPY, "copy", start + 40, start + 90, id=2)]
        return [call(start + 1, id=1), below, call(start + 20, id=2), slow, *work]

    no_mistake(script)
