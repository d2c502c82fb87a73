"""What a Trace and a profile owe each other: nothing. And what a trace cannot be had of."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from kineto_file import shown_by_trace
from toyland import BOTH, CPU, Join, Program, Runtime

import devprof.torch
from devprof.errors import BuildError, UsageError
from devprof.torch import sink_native


def recorded(n: int = 20, **options: Any) -> torch.profiler.profile:
    with toyland.profile([CPU], **options) as prof:
        for _ in range(n):
            torch.ones(2) + 1
    return prof


def test_a_trace_stays_whole_when_the_profile_and_the_plugins_records_are_gone(join: Join) -> None:
    runtime = Runtime()
    join(script=runtime.script)
    with toyland.profile(BOTH, record_shapes=True) as prof:
        toyland.run_in_op(lambda: runtime.launch("k", works=50))
    result = weakref.ref(prof.profiler.kineto_results)
    trace = devprof.torch.trace_of(prof)
    before = shown_by_trace(trace)
    del prof
    gc.collect()
    assert result() is None, "the trace keeps the profile alive"
    assert shown_by_trace(trace) == before


def test_traces_of_one_profile_are_independent_and_equal() -> None:
    prof = recorded(record_shapes=True, with_stack=True)
    first, second = devprof.torch.trace_of(prof), devprof.torch.trace_of(prof)
    assert shown_by_trace(first) == shown_by_trace(second)
    assert not any(column.flags.writeable for column in (first.start_ns, first.name, first.items["Ev Idx"].values))


def test_many_threads_read_and_export_one_profile_at_a_time_of_their_own(tmp_path: Path) -> None:
    prof = recorded(500, record_shapes=True)
    expected = shown_by_trace(devprof.torch.trace_of(prof))
    prof.export_chrome_trace(str(tmp_path / "first.json"))
    size = (tmp_path / "first.json").stat().st_size
    barrier = threading.Barrier(6)

    def work(number: int) -> bool:
        barrier.wait()
        for turn in range(3):
            if number % 2 and shown_by_trace(devprof.torch.trace_of(prof)) != expected:
                return False
            path = tmp_path / f"{number}{turn}xxx.json"  # as long a name as the first one
            prof.export_chrome_trace(str(path))
            if path.stat().st_size != size:
                return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(6))) == [True] * 6


def test_a_trace_may_be_asked_for_while_another_profile_records() -> None:
    prof = recorded()
    with toyland.profile([CPU]) as other:
        trace = devprof.torch.trace_of(prof)
        torch.ones(2) * 3
    assert len(trace.named("aten::add")) == 20
    assert len(devprof.torch.trace_of(other).named("aten::mul")) == 1


def test_a_forked_child_reads_what_its_parent_recorded(program: Program) -> None:
    """The host is then not the process that asks. The first use of the native part may be the child's."""
    said = program("""
        import json, os, torch, toyland, devprof.torch
        from kineto_file import shown_by_file
        from pathlib import Path
        devprof.torch.install()
        with toyland.profile([toyland.CPU]) as prof:
            torch.ones(2) + 1
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            trace = devprof.torch.trace_of(prof)
            hosts = [place.id for place in trace.places if place.kind.value == "host"]
            os.write(writer, json.dumps([hosts, len(trace), bool(trace.on_device.any())]).encode())
            os._exit(0)
        hosts, n, on_device = json.loads(os.read(reader, 1000))
        os.waitpid(child, 0)
        prof.export_chrome_trace("t.json")
        lines = shown_by_file(Path("t.json")).lines
        toyland.say(same=hosts == [os.getpid()], n=n, lines=lines.total(), on_device=on_device)
    """)
    assert (said["same"], said["n"], said["on_device"]) == (True, said["lines"], False)


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="only glibc from 2.33 on counts what it gave out"
)
def test_traces_and_exports_of_one_profile_keep_no_byte_of_a_record(program: Program) -> None:
    """Counted by the allocators themselves, as pages come in jumps; and what is kept on purpose is seen."""
    said = program(
        """
        import ctypes, gc, sys, torch, toyland, devprof.torch

        class Given(ctypes.Structure):
            fields = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
            _fields_ = [(field, ctypes.c_size_t) for field in fields.split()]

        mallinfo = ctypes.CDLL(None).mallinfo2
        mallinfo.restype = Given
        devprof.torch.install()
        with toyland.profile([toyland.CPU], record_shapes=True) as prof:
            for _ in range(2000):
                torch.ones(2) + 1

        def held():
            gc.collect()
            given = mallinfo()
            return given.uordblks + given.hblkhd, sys.getallocatedblocks()

        def grown(keep=lambda trace: None, cycles=20):
            before = held()
            for _ in range(cycles):
                keep(devprof.torch.trace_of(prof))
                prof.export_chrome_trace("t.json")
            return [after - was for after, was in zip(held(), before)]

        grown()
        columns, objects = [], []
        toyland.say(
            records=len(devprof.torch.trace_of(prof)),
            flat=grown(),
            column=grown(lambda trace: columns.append(trace.activity_type.copy())),
            each=grown(lambda trace: objects.extend([number] for number in range(len(trace))), cycles=1),
        )
        """,
        timeout_s=200,
    )
    records = said["records"]
    assert records > 6000
    assert max(said["flat"]) < records / 10, "in twenty cycles not a tenth of a byte, or of an object, for each record"
    assert said["column"][0] > 19 * records, "a byte for each record and cycle"
    assert said["each"][1] > 0.9 * records, "an object for each record"


def test_kineto_in_the_one_process_writes_what_the_sink_reads_in_the_other(program: Program) -> None:
    """Kineto saves once by itself: after the session the process is forked, one side exports, the other asks for the trace."""
    said = program(
        """
        import os, pickle, torch, toyland, devprof.torch
        from kineto_file import shown_by_file, shown_by_trace
        from pathlib import Path
        devprof.torch.install()
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        with toyland.profile([toyland.CPU], record_shapes=True, with_stack=True, profile_memory=True) as prof:
            model(torch.ones(3, 4)).sum().backward()
        child = os.fork()
        if child == 0:
            devprof.torch.uninstall()
            prof.export_chrome_trace("t.json")  # torch's own code, and nothing of devprof's
            os._exit(0)
        given = shown_by_trace(devprof.torch.trace_of(prof))
        left = os.waitpid(child, 0)[1]
        expected = shown_by_file(Path("t.json"))
        more, fewer = given.lines - expected.lines, expected.lines - given.lines
        toyland.say(left=left, n=expected.lines.total(), differ=[len(more), len(fewer)], arrows=given.arrows == expected.arrows)
    """
    )
    assert said["n"] > 30
    assert (said["left"], said["differ"], said["arrows"]) == (0, [0, 0], True)


REFUSED: dict[str, Callable[[], Any]] = {
    "has no trace yet": lambda: toyland.profile([CPU]),
    "has no trace yet: it": lambda: torch.autograd.profiler.profile(use_kineto=True),
    "has no trace yet: it has": lambda: None,
    "this is a str": lambda: "trace.json",
    "this is a int": lambda: 3,
    "this is a profile; .* its trace is its attribute `trace`": lambda: devprof.profile(activities=["cpu"]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_finished_profile_is_refused_with_a_reason(message: str) -> None:
    with pytest.raises(UsageError, match=message):
        devprof.torch.trace_of(REFUSED[message]())


def test_a_profile_that_still_records_is_refused() -> None:
    with toyland.profile([CPU]) as prof, pytest.raises(UsageError, match="still records"):
        devprof.torch.trace_of(prof)
    assert len(devprof.torch.trace_of(prof)) >= 0


def test_a_profile_whose_trace_torch_lost_is_refused_and_its_export_raises_instead_of_crashing(
    program: Program,
) -> None:
    """Stopped on another thread than it was started on, torch finds nothing and gives an empty result."""
    said = program(
        """
        import threading, torch, toyland, devprof.torch
        from devprof.errors import UsageError
        devprof.torch.install()
        prof = torch.autograd.profiler.profile(use_kineto=True)
        prof.__enter__()
        thread = threading.Thread(target=prof.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        said = []
        for what in (lambda: devprof.torch.trace_of(prof), lambda: prof.export_chrome_trace("t.json")):
            try:
                what()
            except (UsageError, RuntimeError) as error:
                said.append(f"{type(error).__name__}: {error}")
        toyland.say(said=said)
    """,
        exit_code=None,
    )
    asked, exported = said["said"]
    assert asked.startswith("UsageError: this profile holds no trace")
    assert exported.startswith("RuntimeError: this profile holds no trace")


def test_without_the_native_part_one_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prof = recorded(1)
    monkeypatch.setenv("DEVPROF_CACHE", str(tmp_path))
    monkeypatch.setenv("DEVPROF_BUILD", "never")
    sink_native._library.cache_clear()
    try:
        with pytest.raises(BuildError, match="run `devprof build sink`"):
            devprof.torch.trace_of(prof)
    finally:
        sink_native._library.cache_clear()


def test_a_compiler_that_fails_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prof = recorded(1)
    calls = tmp_path / "calls"
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\necho called >> {calls}\necho no room >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("DEVPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", str(compiler))
    sink_native._library.cache_clear()
    try:
        for _ in range(2):
            with pytest.raises(BuildError, match="no room"):
                devprof.torch.trace_of(prof)
    finally:
        sink_native._library.cache_clear()
        sink_native._FAILED.clear()
    assert calls.read_text() == "called\n"


def test_a_result_of_another_abi_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Foreign:
        def _pybind11_conduit_v1_(self, platform: bytes, asked: Any, kind: bytes) -> None:
            assert (type(platform), kind) == (bytes, b"raw_pointer_ephemeral")

    with pytest.raises(BuildError, match="another compiler or C\\+\\+ library"):
        sink_native.read(Foreign())
