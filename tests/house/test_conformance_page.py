"""The page of the conformance kit has a section for every check and a row for every broken plugin, made from the code."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from devprof.testing.conformance import CHECKS, ProfilerConformance, Workload, sections

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/conformance.md"
BEGIN, END = "<!-- made from the checks: make snapshot -->\n", "<!-- end of what is made from the checks -->\n"


def _made() -> str:
    sys.path.insert(0, str(ROOT / "tests/conformance"))
    from zoo import ANIMALS

    rows = "".join(f"| [{a.number}](#{a.number.lower()}) | {a.defect} |\n" for a in ANIMALS)
    return f"{sections()}\n## The zoo\n\n| caught by | what is wrong |\n|---|---|\n{rows}"


def test_the_page_has_what_the_table_of_checks_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n{_made()}{END}{after}"
    if os.environ.get("RENEW_SNAPSHOTS"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted, "meant to change? `make snapshot`"


def test_every_section_that_a_failure_names_is_there() -> None:
    anchors = set(re.findall(r'<a id="(\w+)">', PAGE.read_text(encoding="utf-8")))
    assert anchors == {check.page.partition("#")[2] for check in CHECKS}


def test_every_check_is_a_promise_of_one_sentence_with_a_way_to_find_out_and_a_cause() -> None:
    for check in CHECKS:
        assert check.promise.endswith("."), check.number
        assert check.promise.count(". ") == 0, check.number
        assert check.how, check.number
        assert check.cause.endswith("."), check.number
        assert check.area, check.number
    assert len({check.number for check in CHECKS}) == len({check.name for check in CHECKS}) == len(CHECKS)


def test_every_check_is_a_test_under_each_of_its_hosts() -> None:
    wanted = {
        f"test_{check.number.lower()}_{check.name}{'_on_torch' if host == 'torch' else ''}"
        for check in CHECKS
        for host in check.hosts
    }
    assert {name for name in vars(ProfilerConformance) if name.startswith("test_")} == wanted


def test_the_page_names_every_member_that_a_workload_may_have() -> None:
    words = re.findall(r"``(\w+)", Workload.__doc__ or "")
    text = PAGE.read_text(encoding="utf-8")
    assert [word for word in [*words, "launch", "synchronize"] if f"`{word}" not in text] == []
