"""The reference is made from the docstrings, and every error and warning has its entry on the page of messages."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import devprof.errors

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference.md"
MESSAGES = ROOT / "docs/messages.md"
ROOMS = (
    "devprof.profiler",
    "devprof.contract",
    "devprof.model",
    "devprof.correlation",
    "devprof.analysis",
    "devprof.rules",
    "devprof.export",
    "devprof.store",
    "devprof.replay",
    "devprof.testing",
    "devprof.testing.conformance",
    "devprof.errors",
)
HEAD = """# Reference

Made from the docstrings by `make snapshot`; `help(NAME)` in Python has the whole text. The commands are in `devprof --help`.
"""


def _first_sentence(value: object) -> str:
    text = inspect.getdoc(value) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first.replace("|", "\\|")


def _signature(name: str, value: object) -> str:
    if inspect.isfunction(value):
        names = [
            f"{p.name}=" if p.kind is p.KEYWORD_ONLY else p.name for p in inspect.signature(value).parameters.values()
        ]
        return f"{name}({', '.join(names)})"
    return name


def _room(room: str) -> Iterator[str]:
    module = importlib.import_module(room)
    plate = (inspect.getdoc(module) or "").split("\n\n")[0]
    yield f"\n## `{room}`\n\n{plate}\n\n| name | what |\n|---|---|"
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        documented = inspect.isfunction(value) or isinstance(value, type)
        what = _first_sentence(value) if documented else f"a {type(value).__name__}"
        yield f"| `{_signature(name, value)}` | {what} |"


def _made() -> str:
    return HEAD + "\n".join(line for room in ROOMS for line in _room(room)) + "\n"


def test_the_reference_is_what_the_docstrings_say() -> None:
    made = _made()
    if os.environ.get("RENEW_SNAPSHOTS"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "meant to change? `make snapshot`"


def test_everything_in_the_reference_has_a_docstring() -> None:
    assert [line for line in _made().splitlines() if line.endswith("|  |")] == []


def test_every_error_and_warning_has_its_entry() -> None:
    anchors = re.findall(r'^## <a id="(\w+)"></a>(\w+)$', MESSAGES.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for _, name in anchors] == sorted(devprof.errors.__all__)
    assert all(anchor == name.lower() for anchor, name in anchors)
