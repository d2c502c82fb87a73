"""A child of a fork finds no lock of the device held, whatever the parent's other threads did just then."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from openreg_sim.build_spec import openreg_build

FORKS_WHILE_OTHERS_WORK = """
import os, random, signal, threading, warnings
import torch
warnings.simplefilter("ignore")  # Python warns of a fork with threads; that is the point here
base = torch.ones(1, device="openreg").neg()

def shapes(seed):
    draw = random.Random(seed).randint
    while True:
        base.expand(draw(1, 40), draw(1, 40), draw(1, 8), draw(1, 4)).neg()

def numbers():
    x = torch.empty(200_000, device="openreg")
    while True:
        x.uniform_()

def pins():
    while True:
        torch.ones(1).pin_memory().is_pinned()

for job in (lambda: shapes(0), lambda: shapes(1), numbers, pins):
    threading.Thread(target=job, daemon=True).start()
ends = []
for fork in range(80):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for a lock for ever is killed
        x = torch.ones(3, 5, 1000 + fork, device="openreg").uniform_()
        os._exit(0 if torch.ones(1).pin_memory().is_pinned() and x.shape[2] == 1000 + fork else 1)
    ends.append(os.waitpid(child, 0)[1])
    if ends[-1]:
        break
print(len(ends), set(ends), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_children_of_a_program_that_computes_draws_and_pins_in_other_threads_do_the_same(
    run_script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the locks held over the fork, every tenth child waits for ever at its first new shape."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # a child has none of the threads of OpenMP
    done = run_script(FORKS_WHILE_OTHERS_WORK)
    assert done.stdout == "80 {0}\n", done.stderr


def test_every_lock_of_the_library_is_among_those_that_a_fork_waits_for() -> None:
    sources = [*openreg_build().sources, *openreg_build().headers]
    makes_a_lock = re.compile(r"std::\w*mutex\b(?![>&])")
    assert [path.name for path in sources if makes_a_lock.search(path.read_text(encoding="utf-8"))] == ["locks.h"]
