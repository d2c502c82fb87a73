"""``devprof report`` in a real browser, from a file: it renders without a network, in light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from devprof.export.report import html_report
from devprof.store import Trace
from tests.browser.support.chromium import Page
from tests.unit.export.test_report import HOSTILE, small


@pytest.fixture
def path(trace: Trace, tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    html_report(trace, path, title="four steps")
    return path


def test_every_section_is_rendered_and_asks_nobody_for_anything(browser: Page, path: Path) -> None:
    browser.open(path.as_uri())
    titles = browser.value("[...document.querySelectorAll('section')].map((one) => one.querySelector('h2').innerText)")
    assert titles == [
        *("Findings", "Timeline", "Device time by name", "Streams", "Overlap", "Launch latency", "Steps"),
        *("Key averages", "Loss ledger", "Facts"),
    ]
    assert browser.value("[...document.querySelectorAll('section')].every((one) => one.offsetHeight > 50)")
    assert (browser.messages, browser.answered) == ([], [path.as_uri()])


def test_pictures_have_a_size_and_a_colour(browser: Page, path: Path) -> None:
    browser.open(path.as_uri())
    strips = "[...document.querySelectorAll('svg.strip')].map((one) => one.getBoundingClientRect())"
    assert browser.value(f"{strips}.length") == 3, "the thread and two streams"
    assert browser.value(f"{strips}.every((box) => box.width > 500 && box.height > 20)")
    fills = "[...document.querySelectorAll('svg.strip path:not(.mark)')].map((one) => getComputedStyle(one).fill)"
    assert len(set(browser.value(fills))) >= 4, "compute, copies, device calls and ranges each in their own"


@pytest.mark.parametrize("width", [420, 1280])
def test_the_page_fits_its_window(browser: Page, path: Path, width: int) -> None:
    browser.open(path.as_uri(), width=width)
    assert browser.value("document.scrollingElement.scrollWidth") <= width


def test_light_dark_and_paper_each_have_their_colours(browser: Page, path: Path) -> None:
    found = []
    for options in ({}, {"dark": True}, {"print_": True}):
        browser.open(path.as_uri(), **options)
        page = "getComputedStyle(document.body)"
        navigation = "getComputedStyle(document.querySelector('nav')).display"
        found.append([browser.value(one) for one in (f"{page}.backgroundColor", f"{page}.color", navigation)])
    assert found == [
        ["rgb(246, 247, 249)", "rgb(27, 39, 51)", "flex"],
        ["rgb(18, 23, 29)", "rgb(228, 234, 240)", "flex"],
        ["rgb(255, 255, 255)", "rgb(0, 0, 0)", "none"],
    ]


def test_a_click_on_a_column_sorts_the_table_by_its_numbers(browser: Page, path: Path) -> None:
    browser.open(path.as_uri())
    cells = "[...document.querySelectorAll('#device-time tbody tr')].map((row) => Number(row.cells[3].dataset.value))"
    click = "document.querySelectorAll('#device-time thead th')[3].click()"
    before = browser.value(cells)
    browser.value(click)
    assert browser.value(cells) == sorted(before, reverse=True)
    browser.value(click)
    assert browser.value(cells) == sorted(before)


def test_hostile_names_are_text_on_the_page_and_nothing_runs(browser: Page, tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE):
        path = tmp_path / f"{number}.html"
        html_report(small((name, name, name), **{name: name}), path, title=name)
        browser.open(path.as_uri())
        assert (browser.messages, browser.answered) == ([], [path.as_uri()])
        assert browser.value("document.querySelectorAll('script').length") == 1
        shown = browser.value("document.querySelector('#device-time td').textContent")
        assert shown == name.translate({0: "\ufffd", 8: "\ufffd", 0xD800: "\ufffd"})
