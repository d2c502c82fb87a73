"""The contract's page has a heading for every hook and method, with the signature that the code has."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devprof.contract import ActivityLogger, DevprofSpec, IActivityProfiler, IActivityProfilerSession, ProfilerStubs

PAGE = Path(__file__).parents[2] / "docs/plugin-contract.md"
PARTS = (DevprofSpec, IActivityProfiler, IActivityProfilerSession, ActivityLogger, ProfilerStubs)


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
