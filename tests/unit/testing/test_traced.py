"""The fixture `profiled`: it asserts on the trace of a block, and what fails is shown as a small table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devprof import correlation
from devprof.errors import UsageError
from devprof.host import record_function
from devprof.model import ActivityType, GenericTraceActivity
from devprof.registry import register, unregister
from devprof.testing import ScriptedProfiler, Traced, plugin_of
from devprof.testing.baselines import Baselines

KERNEL, COPY, CALL = ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.PRIVATEUSE1_RUNTIME
US = 1000


class Device:
    """Notes what is launched; all of it runs from the start of the window on, at the times given."""

    def __init__(self) -> None:
        self.work: list[Any] = []

    def wait(self) -> None:
        """Let the window reach beyond the last record."""
        end_ns = time.time_ns() + 1_000_000
        while time.time_ns() < end_ns:
            pass

    def run(self, kind: ActivityType, name: str, begin_us: int, length_us: int) -> None:
        self.work.append((kind, name, begin_us * US, length_us * US, _current()))

    def records(self, start_ns: int, end_ns: int) -> Iterable[GenericTraceActivity]:
        for number, (kind, name, begin, length, ids) in enumerate(self.work, start=1):
            at = start_ns + begin
            row = {} if kind is CALL else {"resource": int(kind is COPY), "id": number}
            yield GenericTraceActivity(kind, name, at, at + length, **ids, **row)


def _current() -> dict[str, int]:
    return {"linked": correlation.current_op_id(), "linked_user": correlation.current_user_id()}


@pytest.fixture
def device() -> Iterator[Device]:
    device = Device()
    register(plugin_of(ScriptedProfiler("npu", script=device.records)), "npu")
    yield device
    unregister("npu")


@pytest.fixture
def traced(device: Device, tmp_path: Path) -> Traced:
    """A block with two gemms, a relu under half of a copy, and a wait."""
    block = Traced(Baselines(tmp_path / "baselines.json"), "test_x", "cpu", "npu", host="python")
    with block:
        with record_function("forward"):
            device.run(KERNEL, "gemm 64", 0, 100)
            device.run(KERNEL, "gemm 128", 100, 200)
        with record_function("backward"):
            device.run(KERNEL, "relu", 300, 100)
            device.run(COPY, "copy", 350, 100)
            device.run(CALL, "npuStreamSynchronize", 500, 40)
        device.wait()
    return block


def test_what_holds_passes(traced: Traced) -> None:
    traced.assert_kernels(3)
    traced.assert_kernels({"gemm*": 2, "relu": 1})
    traced.assert_no_synchronisation(allowed=["*StreamSynchronize"])
    traced.assert_overlap(at_least=0.5, of="copies")


def test_another_number_of_kernels_is_shown_by_name(traced: Traced) -> None:
    with pytest.raises(AssertionError) as raised:
        traced.assert_kernels({"gemm*": 3, "softmax": 1})
    assert str(raised.value) == (
        "the kernels differ\n"
        "           expected  found\n"
        "  gemm*    3         2\n"
        "  softmax  1         0\n"
        "  relu     0         1"
    )
    with pytest.raises(AssertionError, match="expected 4 kernels, found 3"):
        traced.assert_kernels(4)


def test_a_wait_is_shown_with_how_long_it_took(traced: Traced) -> None:
    with pytest.raises(AssertionError) as raised:
        traced.assert_no_synchronisation()
    assert str(raised.value) == (
        "the host waited for a device 1 times\n"
        "                        expected  found\n"
        "  npuStreamSynchronize  0         1, 40.0 us"
    )


def test_too_little_overlap_is_shown_by_device_and_none_of_it_is_no_success(traced: Traced) -> None:
    with pytest.raises(
        AssertionError, match=r"too little of the copies overlaps with kernels\n.*\n  npu:0 +60% +50% of 100.0 us"
    ):
        traced.assert_overlap(at_least=0.6, of="copies")
    with pytest.raises(AssertionError, match="there is no communication in the block"):
        traced.assert_overlap(at_least=0.1)
    with pytest.raises(UsageError, match="expected 'communication' or 'copies'"):
        traced.assert_overlap(at_least=0.1, of="everything")


def test_a_device_time_is_compared_with_its_baseline_as_a_share(traced: Traced, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"has no baseline for 'test_x forward' \(it is 0.600 now\)"):
        traced.assert_device_time("forward")
    path = tmp_path / "baselines.json"
    Baselines(path, renew=True).compare("test_x forward", 0.62)
    traced.assert_device_time("forward")
    Baselines(path, renew=True).compare("test_x forward", 0.3)
    with pytest.raises(AssertionError) as raised:
        traced.assert_device_time("forward", within=0.5)
    assert str(raised.value) == (
        "the device time of 'forward' differs from its baseline\n"
        "         expected      found\n"
        "  share  0.300         0.600\n"
        "  ratio  0.50 to 1.50  2.00"
    )


def test_a_device_time_can_be_compared_with_another_ops(traced: Traced, tmp_path: Path) -> None:
    Baselines(tmp_path / "baselines.json", renew=True).compare("test_x forward of backward", 1.5)
    traced.assert_device_time("forward", of="backward", within=0.01)
    with pytest.raises(
        AssertionError, match="there is no op or range 'sideways' in the trace; there are backward, copy"
    ):
        traced.assert_device_time("sideways")


def test_the_time_between_a_ranges_work_is_nobodys(device: Device, tmp_path: Path) -> None:
    baselines = Baselines(tmp_path / "b.json", renew=True)
    block = Traced(baselines, "t", "cpu", "npu", host="python")
    with block:
        with record_function("step"):
            with record_function("forward"):
                device.run(KERNEL, "gemm", 0, 100)
                device.run(KERNEL, "gemm", 400, 100)  # its span on the device lasts 500 us, of which 300 are idle
            device.run(KERNEL, "relu", 700, 50)
        device.wait()
    block.assert_device_time("forward", of="step")
    block.assert_device_time("relu")
    assert json.loads((tmp_path / "b.json").read_text()) == {"t forward of step": 0.8, "t relu": 0.2}


def test_a_wait_of_the_profilers_own_after_the_block_is_not_the_blocks(device: Device, tmp_path: Path) -> None:
    def waits(start_ns: int, end_ns: int) -> Iterable[GenericTraceActivity]:
        yield GenericTraceActivity(CALL, "npuStreamSynchronize", start_ns + US, start_ns + 2 * US)
        yield GenericTraceActivity(CALL, "npuDeviceSynchronize", end_ns - 1, end_ns)

    register(plugin_of(ScriptedProfiler("late", script=waits)), "late")
    try:
        with Traced(Baselines(tmp_path / "b.json"), "t", "cpu", "late", host="python") as block:
            device.wait()
    finally:
        unregister("late")
    assert block.trace.named("npuDeviceSynchronize").size == 1
    with pytest.raises(AssertionError, match=r"waited for a device 1 times\n.*\n  npuStreamSynchronize "):
        block.assert_no_synchronisation()
    block.assert_no_synchronisation(allowed=["npuStream*"])


def test_nothing_can_be_asserted_before_the_block_has_ended(tmp_path: Path, device: Device) -> None:
    block = Traced(Baselines(tmp_path / "b.json"), "t", "cpu", host="python")
    with block, pytest.raises(UsageError, match="behind the `with` statement"):
        block.assert_kernels(0)


@pytest.mark.parametrize("text", ["no", "[1]", '{"a": "b"}'])
def test_a_damaged_file_of_baselines_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(UsageError, match=r"is no JSON|holds something else than numbers"):
        Baselines(tmp_path / "b.json").compare("x", 1.0)


AUTHORS_FILE = """
import devprof


def test_ranges(profiled):
    with profiled("cpu", host="python") as block, devprof.record_function("step"):
        pass
    block.assert_kernels(0)
    block.assert_kernels(1)
"""


def test_the_fixture_is_there_without_an_import(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(AUTHORS_FILE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "devprof.testing.pytest_plugin"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "AssertionError: expected 1 kernels, found 0" in done.stdout, done.stdout
    helped = subprocess.run(
        [*command, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "--devprof-renew-baselines" in helped.stdout


def test_baselines_are_sorted_and_kept_beside_each_other(tmp_path: Path) -> None:
    baselines = Baselines(tmp_path / "b.json", renew=True)
    assert [baselines.compare(key, value) for key, value in (("b", 0.5), ("a", 1 / 3))] == [0.5, 1 / 3]
    assert json.loads((tmp_path / "b.json").read_text()) == {"a": 0.333333, "b": 0.5}
