"""Records of functions are those that torch's own profiler writes with `with_stack` for the same program."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from devprof.host.functions import function_tracer
from devprof.model import ActivityBatch

Tree = list[tuple[str, str | None, int | None]]
"""Name, name of the call around it, and number of the module, call by call."""


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def numbers() -> Iterator[int]:
    yield 1
    yield 2


def down(n: int) -> None:
    if n:
        down(n - 1)


def program(model: Two, other: Two, x: torch.Tensor) -> None:
    down(2)
    sorted([2, 1], key=lambda number: -number)
    [str.upper("x") for _ in numbers()]
    try:
        "".index("z")
    except ValueError:
        [].append(len("z"))
    json.loads("[1]")
    model(x)
    model(x)
    other(x)


def without_address(name: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", name)


def by_torch(path: Path, *arguments: Any) -> Tree:
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        program(*arguments)
    prof.export_chrome_trace(str(path))
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "python_function"]
    args = [event["args"] for event in events]
    ids = [arg["Python id"] for arg in args]
    parents = [arg["Python parent id"] for arg in args]
    return tree(
        [event["name"] for event in events],
        [ids.index(parent) if parent in ids else -1 for parent in parents],
        [arg.get("Python module id") for arg in args],
    )


def by_devprof(*arguments: Any) -> Tree:
    tracer = function_tracer()
    tracer.start()
    program(*arguments)
    batch = tracer.stop()
    return tree([batch.strings[index] for index in batch.name], *parents_and_modules(batch))


def parents_and_modules(batch: ActivityBatch) -> tuple[list[int], list[int | None]]:
    parent, module = batch.metadata["Python parent id"], batch.metadata["Python module id"]
    rows = range(len(batch))
    return (
        [int(parent.values[row]) - 1 if parent.has(row) else -1 for row in rows],
        [int(module.values[row]) if module.has(row) else None for row in rows],
    )


def tree(names: list[str], parents: list[int], modules: list[int | None]) -> Tree:
    first = next(row for row, name in enumerate(names) if name.endswith(": program"))
    inside = {first}
    for row in range(first + 1, len(names)):
        if parents[row] in inside:
            inside.add(row)
    return [
        (without_address(names[row]), without_address(names[parents[row]]) if row != first else None, modules[row])
        for row in sorted(inside)
    ]


@pytest.mark.parametrize("core", ["native", "python"])
def test_names_parents_and_modules_are_torchs(core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_FUNCTION_TRACER", core)
    model, other, x = Two(), Two(), torch.ones(2, 2)
    program(model, other, x)  # what torch does once only is done
    found = by_devprof(model, other, x)
    assert len(found) > 40
    assert found == by_torch(tmp_path / "trace.json", model, other, x)
