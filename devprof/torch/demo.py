"""The demo's program: a training step on the simulated device, under an ordinary torch.profiler session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from devprof.capture import SessionReport, report_of
from devprof.errors import UsageError
from devprof.torch.verify import Check, load_strict, verify

__all__ = ["DemoResult", "run_demo"]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo shows: torch's own table, devprof's account, and what was checked."""

    table: str
    report: SessionReport
    checks: list[Check]


def run_demo(path: Path) -> DemoResult:
    """Profile one training step of a small network on ``openreg`` and check the result.

    Args:
        path: where the trace is written.

    Raises:
        UsageError: the simulated device is not there.
    """
    device = _device()
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    inputs, target = torch.randn(128, 256).to(device), torch.randint(0, 64, (128,)).to(device)
    _step(model, optimizer, inputs, target)  # the first step pays for lazy initialisation
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        _step(model, optimizer, inputs, target)
    prof.export_chrome_trace(str(path))
    table = prof.key_averages().table(sort_by="self_privateuse1_time_total", row_limit=12, max_name_column_width=40)
    report = report_of(prof)
    trace = load_strict(path)
    return DemoResult(table, report, [_parsed(trace), *verify(prof, trace, report)])


def _device() -> torch.device:
    try:
        return torch.device("openreg")
    except RuntimeError as error:
        raise UsageError(
            "torch knows no device named 'openreg': install devprof-openreg-sim and run `devprof build openreg`"
        ) from error


def _step(model: Any, optimizer: Any, inputs: torch.Tensor, target: torch.Tensor) -> None:
    with record_function("forward"):
        loss = torch.nn.functional.cross_entropy(model(inputs), target)
    with record_function("backward"):
        torch.autograd.backward(loss)
    optimizer.step()
    optimizer.zero_grad()


def _parsed(trace: dict[str, Any]) -> Check:
    return Check("the trace is strict JSON", True, f"{len(trace['traceEvents'])} events")
