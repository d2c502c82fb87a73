"""The page about rules names every rule, with its severity and its sentence."""

from __future__ import annotations

import re
from pathlib import Path

from devprof.rules import RULES

PAGE = Path(__file__).parents[3] / "docs/rules.md"


def test_the_page_lists_the_rules_in_their_order() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (\w+) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(rule.name, rule.severity.name.lower(), rule.says) for rule in RULES]
