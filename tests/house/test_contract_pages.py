"""The contract's page has every hook and method with its signature, every value with its fields, and code that runs."""

from __future__ import annotations

import dataclasses
import inspect
import re
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import devprof.contract
from devprof.contract import (
    ActivityLogger,
    Capabilities,
    ClockDomain,
    CorrelationAccess,
    DevprofSpec,
    IActivityProfiler,
    IActivityProfilerSession,
    ProfilerStubs,
    SessionConfig,
    TraceStatus,
)
from devprof.model import DeviceInfo, GenericTraceActivity, MetadataColumn, MetadataKind, ResourceInfo

PAGE = Path(__file__).parents[2] / "docs/plugin-contract.md"
PARTS = (DevprofSpec, IActivityProfiler, IActivityProfilerSession, ActivityLogger, ProfilerStubs)
VALUES = (GenericTraceActivity, ClockDomain, DeviceInfo, ResourceInfo, Capabilities, SessionConfig, MetadataColumn)
ENUMS: tuple[type[Enum], ...] = (CorrelationAccess, TraceStatus, MetadataKind)
REQUIRED = "required"


def _methods(part: type) -> Iterator[str]:
    for name, method in vars(part).items():
        if not name.startswith("_") and inspect.isfunction(method):
            names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in _parameters(method)]
            yield f"{name}({', '.join(names)})"


def _parameters(method: object) -> list[inspect.Parameter]:
    assert callable(method)
    return [parameter for parameter in inspect.signature(method).parameters.values() if parameter.name != "self"]


def _headings(part: type) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    section = re.search(rf"^## .*`{part.__name__}`.*?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/plugin-contract.md has no section for {part.__name__}"
    return re.findall(r"^### `(.+)`$", section.group(1), re.MULTILINE)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_method_has_its_heading_in_the_order_of_the_code(part: type) -> None:
    assert _headings(part) == list(_methods(part))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_method_says_what_it_is_for(part: type) -> None:
    missing = [n for n, m in vars(part).items() if inspect.isfunction(m) and n[0] != "_" and not inspect.getdoc(m)]
    assert missing == []


def _table(value: type) -> list[list[str]]:
    """Cells of the rows under a value's heading, without code marks."""
    section = re.search(rf"^### `{value.__name__}`\n(.*?)(?=^##|\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/plugin-contract.md has no heading for {value.__name__}"
    rows = re.findall(r"^\| `.*\|$", section.group(1), re.MULTILINE)
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return REQUIRED if field.default is dataclasses.MISSING else field.default


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__name__)
def test_every_field_of_a_value_is_in_its_table_with_its_default(value: type) -> None:
    names = {**vars(devprof.contract), "time": time, REQUIRED: REQUIRED}
    shown = [(field, eval(default, names)) for field, _, default, _ in _table(value)]
    assert shown == [(field.name, _default(field)) for field in dataclasses.fields(value)]


@pytest.mark.parametrize("value", ENUMS, ids=lambda value: value.__name__)
def test_every_member_of_an_enum_is_in_its_table(value: type[Enum]) -> None:
    assert [row[0] for row in _table(value)] == list(value.__members__)


def test_the_pages_two_ways_to_make_a_batch_run_and_make_the_same_one() -> None:
    blocks = re.findall(r"<!-- runs: (\w+) -->\n```python\n(.*?)```\n", PAGE.read_text("utf-8"), re.DOTALL)
    assert [name for name, _ in blocks] == ["columns", "objects"]
    made: dict[str, Any] = {}
    for _, code in blocks:
        exec(code, made)
    batches = [made[name] for name in ("batch", "built", "at_once")]
    assert [batch.clock for batch in batches] == ["mydevice"] * 3
    assert batches[0].activities() == [made["gemm"], made["relu"]]
    assert [batch.activities() for batch in batches[1:]] == [batches[0].activities()] * 2
