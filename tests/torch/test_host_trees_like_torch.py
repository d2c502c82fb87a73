"""Arrows and nesting of host events, beside torch's own on the same session."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from devprof.link import forward_backward, nest


def two_passes_over_one_graph() -> None:
    weight = torch.randn(8, 8, requires_grad=True)
    layer = torch.nn.Linear(8, 8)
    loss = layer((weight @ weight + weight).relu()).sum() + weight.sum()
    loss.backward(retain_graph=True)
    loss.backward()


def gradients_of_gradients() -> None:
    weight = torch.randn(8, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad((weight * weight * weight).sum(), weight, create_graph=True)
    gradient.sum().backward()


def recomputation() -> None:
    layer = torch.nn.Linear(8, 8)
    given = torch.randn(4, 8, requires_grad=True)
    torch.utils.checkpoint.checkpoint(lambda x: layer(x).relu(), given, use_reentrant=False).sum().backward()


def events_of_file(program: Callable[[], None], path: Path) -> list[dict[str, Any]]:
    """What torch writes of a session into its file, with exact times."""
    with profile(activities=[ProfilerActivity.CPU]) as session:
        program()
    session.export_chrome_trace(str(path))
    events: list[dict[str, Any]] = json.loads(path.read_text(), parse_float=Decimal)["traceEvents"]
    return events


def nanoseconds(values: list[Decimal | int]) -> npt.NDArray[np.int64]:
    return np.array([int(value * 1000) for value in values], dtype=np.int64)


@pytest.mark.parametrize("program", [two_passes_over_one_graph, gradients_of_gradients, recomputation])
def test_forward_and_backward_ops_are_paired_as_torch_pairs_them(program: Callable[[], None], tmp_path: Path) -> None:
    events = events_of_file(program, tmp_path / "trace.json")
    ops = [event for event in events if event.get("ph") == "X" and "Sequence number" in event.get("args", {})]
    start = nanoseconds([op["ts"] for op in ops])
    end = start + nanoseconds([op["dur"] for op in ops])
    forward_thread = np.array([op["args"]["Fwd thread id"] for op in ops])
    found = forward_backward(
        start,
        end,
        np.full(len(ops), forward_thread.max()),  # torch's own number of the one thread here
        np.array([op["args"]["Sequence number"] for op in ops]),
        forward_thread,
    )
    arrows = {(event["ph"], event["id"]): int(event["ts"] * 1000) for event in events if event.get("cat") == "fwdbwd"}
    ours = {("s", number): int(start[op]) for number, op in enumerate(found.forward, start=1)}
    ours |= {("f", number): int(start[op]) for number, op in enumerate(found.backward, start=1)}
    assert len(found) > 3
    assert ours == arrows


@pytest.mark.parametrize("program", [two_passes_over_one_graph, gradients_of_gradients, recomputation])
def test_ops_nest_as_in_torchs_own_list_of_events(program: Callable[[], None]) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as session:
        program()
    events = [event for event in session.events() if not event.is_async]
    number = {id(event): index for index, event in enumerate(events)}
    wanted = [-1 if event.cpu_parent is None else number[id(event.cpu_parent)] for event in events]
    start, end = (
        np.array([round(getattr(event.time_range, edge) * 1000) for event in events], dtype=np.int64)
        for edge in ("start", "end")
    )
    threads = np.array([event.thread for event in events], dtype=np.int64)
    assert max(wanted) > 0
    assert nest(start, end, threads, entered_in_order=False).tolist() == wanted
