"""Every DEVPROF_* variable that code reads is in docs/environment.md, and every variable there is read by code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = (ROOT / "devprof", ROOT / "plugins")
TABLE = ROOT / "docs/environment.md"


def _in_python() -> Iterator[str]:
    for path in (path for folder in CODE for path in folder.rglob("*.py") if "tests" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.findall(r"^DEVPROF_[A-Z_]+$", node.value)


def _in_native() -> Iterator[str]:
    for path in (path for folder in CODE for suffix in ("*.cpp", "*.h") for path in folder.rglob(suffix)):
        yield from re.findall(r'getenv\("(DEVPROF_[A-Z_]+)"\)', path.read_text(encoding="utf-8"))


def test_the_table_names_exactly_the_variables_that_code_reads() -> None:
    table = re.findall(r"^\| `(DEVPROF_[A-Z_]+)`", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert table == sorted({*_in_python(), *_in_native()})
