"""A Ctrl-C while native code calls Python for every op, as legacy stubs and Python pushes do: it reaches the program."""

from __future__ import annotations

import pytest
from toyland import Program

INTERRUPTED = """
import os, signal, sys, threading, time
import devprof.torch, toyland, torch
from devprof.contract import CorrelationAccess

devprof.torch.install()
toyland.backend()
toyland.block_installed_plugins()
legacy = {legacy}
if legacy:
    toyland.take_in(stubs=toyland.Stubs())
    session = lambda: torch.autograd.profiler.profile(use_device=toyland.backend())
else:
    toyland.take_in(toyland.scripted(correlation=CorrelationAccess.PYTHON))
    session = toyland.profile
x, reached, handler = torch.ones(4), 0, signal.getsignal(signal.SIGINT)
with session():  # loads everything
    x.add_(1)
for _ in range(5):
    began = time.monotonic()
    try:
        with session() as prof:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            while time.monotonic() - began < 20:
                x.add_(1)
    except KeyboardInterrupt:
        reached += 1
toyland.say(reached=reached, handler_is_back=signal.getsignal(signal.SIGINT) is handler)
"""


@pytest.mark.parametrize("legacy", [True, False], ids=["legacy stubs", "Python pushes"])
def test_every_ctrl_c_in_a_loop_of_ops_reaches_the_program(program: Program, legacy: bool) -> None:
    """Most of them arrive inside the call that native code made, where ctypes would print and drop the exception."""
    said = program(INTERRUPTED.replace("{legacy}", str(legacy)))
    assert (said["reached"], said["handler_is_back"]) == (5, True)
    assert "Exception ignored" not in said["stderr"]
