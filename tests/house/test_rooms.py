"""Rooms have a door plate, one job and a sensible size, and no cupboard is called a room."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "devprof", ROOT / "plugins/openreg_sim/openreg_sim", ROOT / "plugins/cuda_cupti/cuda_cupti")
SOURCES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
PLATES = [path for path in SOURCES if path.name == "__init__.py"]
CUPBOARDS = {"utils", "util", "helpers", "common", "misc", "base", "core"}
MODULE_LINES = 400
FUNCTION_LINES = 50
MEDIAN_FUNCTION_LINES = 12


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, _body_lines(node)


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring: a long explanation does not make code long."""
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


@pytest.mark.parametrize("path", PLATES, ids=_id)
def test_every_room_says_its_job_what_goes_in_what_comes_out_and_what_it_never_does(path: Path) -> None:
    plate = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    starts = [line.partition(":")[0] for line in plate.splitlines()]
    assert [word for word in starts if word in {"Job", "In", "Out", "Never"}] == ["Job", "In", "Out", "Never"]


@pytest.mark.parametrize("path", SOURCES, ids=_id)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SOURCES, ids=_id)
def test_no_module_and_no_function_outgrows_its_place(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES
    assert [(name, lines) for name, lines in _functions(path) if lines > FUNCTION_LINES] == []


def test_functions_are_short_as_a_rule() -> None:
    lengths = [lines for path in SOURCES for _, lines in _functions(path)]
    assert statistics.median(lengths) <= MEDIAN_FUNCTION_LINES


def test_no_module_is_named_as_a_cupboard() -> None:
    assert [_id(path) for path in SOURCES if path.stem in CUPBOARDS or path.parent.name in CUPBOARDS] == []
