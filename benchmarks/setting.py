"""What the benchmarks share: a renamed backend without a device, a gate to hold a ratio against, and how costs are taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

__all__ = ["Gate", "cpu_us", "in_own_process", "peak_bytes", "renamed_backend"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A measured ratio and its bound.

    Attributes:
        name: what was measured.
        value: the figure, in `unit`.
        bound: greatest value that passes; None for a figure that is only shown.
        unit: ``"x"`` for a ratio, else ``"ns"``, ``"us"``, ``"ms"``, ``"B"``.
        detail: what it was made of.
    """

    name: str
    value: float
    bound: float | None
    unit: str = "x"
    detail: str = ""

    @property
    def passed(self) -> bool:
        """False where the bound is missed."""
        return self.bound is None or self.value <= self.bound

    def line(self) -> str:
        """Return the figure as one line."""
        bound = "" if self.bound is None else f"  (at most {self.bound:g})"
        verdict = "    " if self.bound is None else ("ok  " if self.passed else "MISS")
        return f"{verdict} {self.name}: {self.value:.3g} {self.unit}{bound}  {self.detail}"


def cpu_us(work: Callable[[], object]) -> float:
    """Return the processor time that something takes, us."""
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / 1000


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the peak of what numpy and Python allocate meanwhile."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def in_own_process(module: str, size: int) -> dict[str, float]:
    """Run a benchmark's own program, ``python -m MODULE SIZE``, and return the figures that it prints as JSON at its end."""
    command = [sys.executable, "-m", module, str(size)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def renamed_backend() -> str:
    """Return the name of the renamed PrivateUse1 backend, renaming it where nobody has: torch then takes PrivateUse1.

    Installed plugins are left out, so that only the plugin that is measured takes part.
    """
    import torch

    from devprof.torch import install

    os.environ["DEVPROF_BLOCK_PLUGINS"] = ",".join(entry.name for entry in entry_points(group="devprof.plugins"))
    install()
    name = torch._C._get_privateuse1_backend_name()
    if name != "privateuseone":
        return str(name)
    torch.utils.rename_privateuse1_backend("bench")
    return "bench"
