"""The three usual silent failures each give one warning with the cause at the end of an ordinary session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from devprof.analysis import key_averages
from devprof.errors import LossWarning
from devprof.export import chrome_trace
from devprof.host import RecordFunction
from devprof.model import ActivityType, GenericTraceActivity
from devprof.pipeline.files import load
from devprof.profiler import profile
from devprof.registry import register, unregister
from devprof.testing import ScriptedProfiler, plugin_of

KERNEL, COPY, CALL, DRIVER = (
    ActivityType.CONCURRENT_KERNEL,
    ActivityType.GPU_MEMCPY,
    ActivityType.PRIVATEUSE1_RUNTIME,
    ActivityType.PRIVATEUSE1_DRIVER,
)
Script = Callable[[int, int], list[GenericTraceActivity]]


def session(script: Script) -> None:
    """Run an ordinary session with a plugin that delivers this."""
    register(plugin_of(ScriptedProfiler("npu", script=script)), "npu")
    try:
        with profile(activities=["cpu", "npu"], host="python"), RecordFunction("op"):
            end_ns = time.time_ns() + 100_000
            while time.time_ns() < end_ns:
                pass
    finally:
        unregister("npu")


def call(at: int, **fields: int) -> GenericTraceActivity:
    return GenericTraceActivity(CALL, "launch", at, at + 10, thread_id=5, **fields)


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
        assert list(trace.facts["report"]["plugins"]) == ["npu"], name  # type: ignore[index,call-overload]


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


def test_calls_alone_and_driver_calls_below_runtime_calls_are_no_mistake() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        below = GenericTraceActivity(DRIVER, "submit", start + 2, start + 5, id=1, thread_id=5)
        return [call(start + 1, id=1), below, call(start + 50, id=2), call(start + 70)]

    session(script)


def test_beside_work_driver_calls_below_runtime_calls_are_no_mistake_nor_a_slow_one_that_has_work() -> None:
    def script(start: int, end: int) -> list[GenericTraceActivity]:
        below = GenericTraceActivity(DRIVER, "submit", start + 2, start + 5, id=1, thread_id=5)
        slow = GenericTraceActivity(DRIVER, "submit", start + 25, start + 20_000, id=2, thread_id=5)
        work = [GenericTraceActivity(COPY, "copy", start + 40, start + 90, id=2)]
        return [call(start + 1, id=1), below, call(start + 20, id=2), slow, *work]

    session(script)
