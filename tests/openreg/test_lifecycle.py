"""Session after session, threads, forks, exceptions, and the end of the interpreter."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import simland
import torch
from simland import Session
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import record_function

import devprof
from devprof.torch import interpose

N_RUNS = 10


@cache
def tensor() -> torch.Tensor:
    return torch.ones(64, 64, device="openreg")


def one_kernel() -> None:
    tensor() + tensor()


@pytest.fixture(autouse=True, scope="module")
def _warm(_device: None) -> None:
    one_kernel()
    torch.openreg.synchronize()


def threads_now() -> tuple[list[str], int]:
    """Return the names of Python's threads, once those of the sessions have ended, and the number of the process's threads."""
    for thread in threading.enumerate():
        if thread.name.startswith(("devprof", "openreg")):
            thread.join(timeout=60)
    return sorted(thread.name for thread in threading.enumerate()), len(list(Path("/proc/self/task").iterdir()))


def test_fifty_sessions_leave_no_thread_behind() -> None:
    def session() -> Any:
        with simland.profile() as prof:
            one_kernel()
        return devprof.report_of(prof)

    session()
    names_before, count_before = threads_now()
    reports = [session() for _ in range(50)]
    names, count = threads_now()
    assert {(report.clean, report.ledgers["openreg"].device_work) for report in reports} == {(True, 1)}
    assert names == names_before
    # the system takes a moment to forget a thread that has ended; one left per session would be fifty
    assert count - count_before < 10


def test_two_sessions_in_a_row_share_nothing(tmp_path: Path) -> None:
    first = simland.record(lambda: (one_kernel(), one_kernel()), tmp_path)
    tensor() * tensor()  # between the two: in neither
    second = simland.record(lambda: tensor() - tensor(), tmp_path)
    names = [[one.name for one in session.trace.work()] for session in (first, second)]
    assert names == [["add_kernel", "add_kernel"], ["sub_kernel"]]
    for session in (first, second):
        assert simland.disagreements(session) == []
        assert session.report.clean


def test_a_profile_can_be_started_again(tmp_path: Path) -> None:
    prof = simland.profile()
    for _ in range(2):
        with prof:
            one_kernel()
        assert [one.name for one in simland.exported(prof, tmp_path).work()] == ["add_kernel"]
        assert devprof.report_of(prof).clean


def test_a_session_that_ends_inside_a_range_leaves_no_id_for_the_next(tmp_path: Path) -> None:
    with record_function("around both"):
        prof = simland.profile()
        prof.start()
        with record_function("open"):
            one_kernel()
            prof.stop()
        second = simland.record(one_kernel, tmp_path)
    assert [one.name for one in simland.exported(prof, tmp_path).slices("gpu_user_annotation")] == ["open"]
    assert second.trace.slices("gpu_user_annotation") == []
    assert [one.user_id for one in second.worked] == [0]
    assert simland.disagreements(second) == []


def test_an_exception_in_the_block_leaves_trace_and_next_session_whole(tmp_path: Path) -> None:
    def body() -> None:
        with record_function("before"):
            one_kernel()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), simland.profile() as prof:
        body()
    trace = simland.exported(prof, tmp_path)
    assert [one.name for one in trace.work()] == ["add_kernel"]
    assert [one.name for one in trace.slices("gpu_user_annotation")] == ["before"]
    assert devprof.report_of(prof).clean
    session = simland.record(one_kernel, tmp_path)
    assert simland.disagreements(session) == []
    assert interpose._INTERPOSER.turns.active is None


def test_an_exception_inside_a_device_op_leaves_the_stacks_balanced(tmp_path: Path) -> None:
    def body() -> None:
        with record_function("range"):
            with pytest.raises(RuntimeError):
                tensor() @ torch.ones(3, 3, device="openreg")
            one_kernel()
        tensor() * tensor()

    session = simland.record(body, tmp_path)
    ops = session.trace.ops()
    assert [(one.name, ops[one.op_id].name) for one in session.trace.work()][-2:] == [
        ("add_kernel", "aten::add"), ("mul_kernel", "aten::mul"),
    ]  # fmt: skip
    assert simland.disagreements(session) == []


# --- threads ----------------------------------------------------------------------------------------------------------


def work_on_threads(count: int) -> list[int]:
    """Launch kernels from several threads at once, each on a stream of its own; return the threads' native ids."""
    barrier = threading.Barrier(count)

    def work(number: int) -> int:
        stream = torch.Stream(f"openreg:{number % 2}")
        x = torch.ones(16, 16, device=f"openreg:{number % 2}")
        barrier.wait(timeout=60)
        with record_function(f"thread {number}"), stream:
            for _ in range(20):
                x @ x
        return threading.get_native_id()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def products(session: Session) -> list[Any]:
    return [one for one in session.trace.work() if one.name == "mm_kernel"]


def test_with_all_threads_profiled_each_kernel_belongs_to_an_op_of_its_own_thread(tmp_path: Path) -> None:
    threads: list[int] = []
    config = _ExperimentalConfig(profile_all_threads=True)
    session = simland.record(lambda: threads.extend(work_on_threads(4)), tmp_path, experimental_config=config)
    ops, calls = session.trace.ops(), {one.launch: one for one in session.trace.launches()}
    assert [(ops[one.op_id].name, ops[one.op_id].tid) for one in products(session)] == [
        ("aten::mm", calls[one.launch].tid) for one in products(session)
    ]
    assert {calls[one.launch].tid for one in products(session)} == set(threads)
    assert len(products(session)) == 80
    assert sorted({one.name for one in session.trace.slices("gpu_user_annotation")}) == [
        f"thread {number}" for number in range(4)
    ]
    assert simland.disagreements(session) == []
    assert session.report.clean


def test_kernels_of_a_thread_that_torch_does_not_profile_are_kept_unlinked_on_that_threads_row(tmp_path: Path) -> None:
    threads: list[int] = []
    session = simland.record(lambda: threads.extend(work_on_threads(1)), tmp_path)
    calls = {one.launch: one for one in session.trace.launches()}
    assert len(products(session)) == 20
    assert {(one.op_id, calls[one.launch].tid) for one in products(session)} == {(0, threads[0])}
    assert session.ledger.notes["unlinked"] == session.ledger.device_work
    assert simland.disagreements(session) == []


# --- processes --------------------------------------------------------------------------------------------------------

FORKS = """
    import os, pathlib
    import simland, torch
    x = torch.ones(8, 8, device="openreg")
    session = simland.record(lambda: x + x, pathlib.Path())
    child = os.fork()
    if child == 0:
        session = simland.record(lambda: (x * x, x - x), pathlib.Path())
        names = [one.name for one in session.trace.work()]
        found = simland.disagreements(session)
        # as multiprocessing ends its children; destructors of torch's hang in the child of a process that has profiled
        os._exit(0 if names == ["mul_kernel", "sub_kernel"] and found == [] and session.report.clean else 9)
    _, status = os.waitpid(child, 0)
    again = simland.record(lambda: x + x, pathlib.Path())
    simland.say(child=os.waitstatus_to_exitcode(status), parent=simland.disagreements(again), clean=again.report.clean)
"""


def test_after_a_fork_parent_and_child_profile_on(said: Any) -> None:
    assert said(FORKS) == {"child": 0, "parent": [], "clean": True}


BACKWARD_LAST = """
import torch
from torch.profiler import ProfilerActivity, profile

model = torch.nn.Linear(16, 16).to("openreg")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    model(torch.ones(4, 16, device="openreg")).sum().backward()
"""


def test_a_script_that_ends_right_after_backward_in_or_after_a_profile_exits_with_0(fresh: Any, tmp_path: Path) -> None:
    """autograd's device threads may still hold something of Python's then; see `openreg_sim.device.at_exit`."""
    (tmp_path / "in.py").write_text(BACKWARD_LAST, encoding="utf-8")
    (tmp_path / "after.py").write_text(BACKWARD_LAST + BACKWARD_LAST.splitlines()[-1].strip(), encoding="utf-8")
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda script: fresh(script, folder=tmp_path), ["in.py", "after.py"] * (N_RUNS // 2)))
    assert [(one.returncode, _unexpected(one.stderr)) for one in done] == [(0, [])] * N_RUNS


def _unexpected(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if not line.startswith("USDT:")]
