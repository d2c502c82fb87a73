"""Sixteen threads that launch device work, all of them profiled: every record is linked, in every session."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import simland
import torch
from torch._C._profiler import _ExperimentalConfig

from devprof import correlation

N_THREADS, N_OPS, N_SESSIONS = 16, 25, 3


def _work(barrier: threading.Barrier, device: int, depths: list[tuple[int, int]]) -> None:
    x = torch.ones(4, device=f"openreg:{device}")
    barrier.wait()
    for _ in range(N_OPS):
        x.add_(1)
    depths.append(tuple(correlation.depths()))


def _sixteen_threads(depths: list[tuple[int, int]], unbalanced: list[int]) -> None:
    barrier = threading.Barrier(N_THREADS)
    threads = [threading.Thread(target=_work, args=(barrier, i % 2, depths)) for i in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    unbalanced.append(correlation.unbalanced_pops())


@pytest.mark.parametrize("number", range(N_SESSIONS))
def test_every_launch_of_sixteen_profiled_threads_is_linked_and_their_stacks_are_balanced(
    tmp_path: Path, number: int
) -> None:
    depths: list[tuple[int, int]] = []
    unbalanced: list[int] = []
    session = simland.record(
        lambda: _sixteen_threads(depths, unbalanced),
        tmp_path,
        experimental_config=_ExperimentalConfig(profile_all_threads=True),
    )
    adds = [one for one in session.trace.slices("kernel") if one.name == "add_kernel"]
    assert len(adds) == N_THREADS * N_OPS
    assert session.ledger.linked == session.ledger.device_work == len(session.worked)
    assert (depths, unbalanced) == ([(0, 0)] * N_THREADS, [0])
    assert session.report.clean
