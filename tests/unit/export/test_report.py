"""The report: it says what the analysis says, every text of a trace is only text, and it is small whatever the trace."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from devprof import analysis, rules
from devprof.errors import UsageError
from devprof.export.report import html_report
from devprof.export.report.account import n_lost
from devprof.model import ActivityType
from devprof.model.reasons import NOT_OF_THE_WINDOW
from devprof.pipeline.files import load
from devprof.pipeline.ranks import merge
from devprof.store import ItemKind, Place, PlaceKind, Row, Trace
from tests.unit.export.pages import Page
from tests.unit.export.public_traces import each_public_trace
from tests.unit.export.test_hostile_traces import traces
from tests.unit.export.traces import BASE_NS, DEVICE, HOST, kernel, op, trace_of

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "</style><img src=x onerror=alert(3)>",
    '" onmouseover="alert(4)',
    "' onfocus='alert(5)' autofocus='",
    "<!-- ",
    "&lt;b&gt; &amp; &#60;",
    "javascript:alert(6)",
    "a\x00b\x08c\ud800d",
    "\u202egnp.exe",
]
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "p", "nav", "a", "main", "section", "h2", "h3"),
    *("div", "b", "span", "i", "ul", "li", "code", "figure", "svg", "path", "rect", "table", "thead", "tbody", "tr"),
    *("th", "td", "footer", "script"),
}
ACCOUNT = {
    "produced": 12,
    "emitted": 9,
    "device_work": 4,
    "linked": 3,
    "dropped": {"buffer full": 2},
    "rejected": {"ends before it starts": 1},
    "lost_unknown": ["the device was reset"],
    "errors": ["session.stop: it broke"],
}


def step(number: int, start_ns: int, end_ns: int) -> dict[str, Any]:
    return op(f"ProfilerStep#{number}", start_ns, end_ns, type=ActivityType.USER_ANNOTATION)


def small(names: tuple[str, str, str] = ("mm", "launch", "mm_kernel"), **facts: object) -> Trace:
    """Two steps of an op that launches a kernel and a copy; memory; an account."""
    events = []
    for number in (0, 1):
        at = number * 10_000
        parent = len(events)
        events += [
            step(number, at, at + 9_000),
            op(names[0], at + 1_000, at + 4_000, parent=parent, id=10 + number),
            op(names[1], at + 1_500, at + 2_000, type=ActivityType.CUDA_RUNTIME, parent=parent + 1, id=100 + number),
            kernel(names[2], at + 3_000, at + 7_000, parent=parent + 2, id=100 + number, linked=10 + number),
            {**kernel("copy", at + 7_500, at + 8_000, linked=10 + number), "type": ActivityType.GPU_MEMCPY},
            op("[memory]", at + 1_200, at + 1_200, type=ActivityType.CPU_INSTANT_EVENT),
        ]
    memory = [i for i, event in enumerate(events) if event["name"] == "[memory]"]
    items = {
        "Bytes": (ItemKind.INT, dict.fromkeys(memory, 2048)),
        "Total Allocated": (ItemKind.INT, dict(zip(memory, (2048, 4096), strict=True))),
        "Total Reserved": (ItemKind.INT, dict.fromkeys(memory, 8192)),
        "Device": (ItemKind.STRING, dict.fromkeys(memory, "openreg:0")),
    }
    window = {"window_start_ns": BASE_NS, "window_end_ns": BASE_NS + 20_000}
    return trace_of(events, items=items, facts={"report": {"plugins": {"openreg": ACCOUNT}}, **facts}, **window)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.html"


def page_of(trace: Trace, path: Path, **options: Any) -> Page:
    html_report(trace, path, **options)
    return Page(path)


def numbers(answer: analysis.Answer, *names: str) -> list[list[str]]:
    return [[str(row[name]) for name in names] for row in answer]


# -- what it says ------------------------------------------------------------------------------------------------------


def test_a_full_trace_has_every_section_and_the_menu_leads_to_each(path: Path) -> None:
    page = page_of(small(), path)
    assert page.sections == [
        *("findings", "timeline", "device-time", "streams", "overlap", "launches", "steps", "memory", "averages"),
        "ledger",
    ]
    links = [one.attributes["href"] for one in page.root.all("nav")[0].all("a")]
    assert links == [f"#{key}" for key in page.sections]


def test_an_empty_trace_is_a_page_without_pictures(path: Path) -> None:
    page = page_of(trace_of([]), path)
    assert page.sections == ["findings", "ledger"]
    assert "Every rule holds." in page.section("findings").text


def test_device_time_is_that_of_the_analysis_to_the_nanosecond(path: Path) -> None:
    trace = small()
    rows = page_of(trace, path).section("device-time").table()
    found = [[row[key] for key in ("name", "kind", "device", "count", "total", "total share", "max")] for row in rows]
    answer = analysis.device_breakdown(trace)
    assert found == numbers(answer, "name", "kind", "device", "count", "total_ns", "total_share", "max_ns")
    assert found[0][:5] == ["mm_kernel", "kernel", "openreg:0", "2", "8000"]


def test_streams_say_their_idle_causes_and_the_bars_add_up_to_the_whole(path: Path) -> None:
    trace = small()
    section = page_of(trace, path).section("streams")
    answer = analysis.stream_usage(trace)
    keys = [f"idle {cause}" for cause in analysis.CAUSES]
    columns = [f"{key.replace(' ', '_')}_ns" for key in keys]
    assert [[row[key] for key in ("span", "busy", *keys)] for row in section.table()] == numbers(
        answer, "span_ns", "busy_ns", *columns
    )
    bar = next(one for one in section.all("svg") if one.attributes["class"] == "stacked")
    assert sum(float(one.attributes["width"] or 0) for one in bar.all("rect")) == pytest.approx(1000, abs=0.05)


def test_overlap_launches_and_steps_are_those_of_the_analysis(path: Path) -> None:
    trace = small()
    page = page_of(trace, path)
    (row,) = page.section("overlap").table()
    assert (row["compute"], row["copy"], row["busy"]) == ("8000", "1000", "9000")
    (row,) = page.section("launches").table()
    assert [row[key] for key in ("launch", "count", "min", "median", "p95", "max", "early")] == numbers(
        analysis.launch_latency(trace), "launch", "count", "min_ns", "median_ns", "p95_ns", "max_ns", "early"
    )[0]
    assert [[row["step"], row["duration"], row["busy openreg:0"]] for row in page.section("steps").table()] == [
        ["0", "9000", "4500"],
        ["1", "9000", "4500"],
    ]


def test_steps_of_several_ranks_say_whose_they_are(path: Path) -> None:
    rows = page_of(merge([small(), small()], align="none"), path).section("steps").table()
    assert [[row[key] for key in ("rank", "step", "duration", "busy openreg:0", "busy openreg:1")] for row in rows] == [
        ["0", "0", "9000", "4500", ""],
        ["0", "1", "9000", "4500", ""],
        ["1", "0", "9000", "", "4500"],
        ["1", "1", "9000", "", "4500"],
    ]
    assert (
        "steps 0 of rank 0 to 1 of rank 1"
        in page_of(merge([small(), small()], align="none"), path).section("steps").text
    )


def test_key_averages_of_the_host_are_those_of_the_analysis(path: Path) -> None:
    trace = small()
    rows = page_of(trace, path).section("averages").table()
    expected = {
        row.key: [row.count, row.self_cpu_time_total_ns, row.cpu_time_total_ns, row.device_time_total_ns]
        for row in analysis.key_averages(trace)
        if row.device_type == "cpu"
    }
    keys = ("calls", "self cpu", "cpu total", "device total")
    assert {row["name"]: [int(row[key]) for key in keys] for row in rows} == expected
    assert expected["mm"][3] == 9000, "the op owns the device time of what it launched"


def test_the_peak_of_memory_is_said_by_device(path: Path) -> None:
    (head,) = page_of(small(), path).section("memory").all("h3")
    assert (head.text, head.attributes["data-value"]) == ("openreg:0: at most 4.000 KiB", "4096")


def test_a_record_that_came_twice_or_is_not_of_the_window_is_not_lost() -> None:
    dropped = {"full": 1, "something new": 2, **dict.fromkeys(NOT_OF_THE_WINDOW, 100)}
    plugin = {"produced": 410, "emitted": 5, "dropped": dropped, "rejected": {"delivered twice": 2}}
    assert n_lost(small().with_facts(report={"plugins": {"openreg": plugin}})) == 3


def test_the_ledger_says_what_was_lost_and_why_and_the_page_begins_with_how_much(path: Path) -> None:
    page = page_of(small(), path)
    (row,) = page.section("ledger").table()
    assert [row[key] for key in ("plugin", "produced", "emitted", "device work", "linked")] == [
        "openreg",
        "12",
        "9",
        "4",
        "3",
    ]
    assert [row[key] for key in ("dropped", "rejected", "lost unknown")] == ["2", "1", "1"]
    text = page.section("ledger").text
    assert all(
        why in text for why in ("buffer full: 2", "ends before it starts: 1", "the device was reset", "it broke")
    )
    tiles = {
        one.all("span")[0].text: one.all("b")[0].text
        for one in page.root.all("div")
        if "tile" in str(one.attributes.get("class")).split()
    }
    assert (tiles["records lost"], tiles["events on 2 rows"]) == ("4", "12")


def test_a_trace_without_an_account_claims_nothing_about_losses(path: Path) -> None:
    page = page_of(trace_of([op("mm", 0, 10)]), path)
    assert "no account" in page.section("ledger").text
    assert "records lost" not in page.root.text


def test_findings_are_those_of_the_rules_with_the_worst_first(path: Path) -> None:
    trace = trace_of([op("backwards", 10, 0), kernel("alone", 5, 9)])
    found = rules.check(trace)
    items = page_of(trace, path).section("findings").all("li")
    assert sorted(item.all("code")[0].text for item in items) == sorted(one.rule for one in found)
    severities = [str(item.attributes["class"]) for item in items]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert severities[0] == "error"


def test_a_strip_shows_when_a_row_was_busy_and_with_what(path: Path) -> None:
    """The stream computes in the third to the seventh tenth of its span and copies in the tenth one."""
    trace = trace_of(
        [
            op("mm", 0, 10_000),
            kernel("k", 2_000, 7_000),
            {**kernel("c", 9_000, 10_000), "type": ActivityType.GPU_MEMCPY},
        ]
    )
    section = page_of(trace, path).section("timeline")
    strips = [one for one in section.all("svg") if one.attributes["class"] == "strip"]
    shapes = {str(one.all("title")[0].text): one.attributes["d"] for one in strips[1].all("path")}
    assert shapes == {"compute": "M0 100V100H80V0H280V100H400V100Z", "copy": "M0 100V100H80V0H280V100H360V0H400V100Z"}
    shares = [one.text for one in section.all("div") if one.attributes.get("class") == "n"]
    assert shares == ["100.0 %", "60.0 %"]


# -- texts are only text -----------------------------------------------------------------------------------------------


def assert_harmless(page: Page) -> None:
    """Nothing in a page runs, loads or leads anywhere, but devprof's own script and style."""
    elements = page.root.all()
    assert {one.tag for one in elements} <= TAGS
    assert [one for one in elements if any(key.startswith("on") or key == "src" for key in one.attributes)] == []
    assert all(str(one.attributes["href"]).startswith("#") for one in elements if "href" in one.attributes)
    (script,), (style,) = page.root.all("script"), page.root.all("style")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    policy = next(one for one in elements if one.attributes.get("http-equiv") == "Content-Security-Policy")
    assert f"script-src 'sha256-{digest}'" in str(policy.attributes["content"])
    assert str(policy.attributes["content"]).startswith("default-src 'none'")
    assert "alert" not in script.text + style.text
    assert "url(" not in style.text
    assert "@import" not in style.text


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_name_is_shown_as_it_is_wherever_it_stands(path: Path, name: str) -> None:
    seen = "".join("\ufffd" if ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 else letter for letter in name)
    trace = small(
        (name, name, name), **{name: {name: name}}, report={"plugins": {name: {name: name, "errors": [name]}}}
    )
    trace = Trace(
        **{key: getattr(trace, key) for key in Trace.__dataclass_fields__}
        | {
            "places": (Place(1, PlaceKind.HOST, name), Place(0, PlaceKind.DEVICE, name, backend=name)),
            "rows": (Row(0, 1, name), Row(1, 7, name)),
        }
    )
    page = page_of(trace, path, title=name)
    assert_harmless(page)
    assert page.root.all("h1")[0].text == page.root.all("title")[0].text == seen
    for key in ("timeline", "device-time", "streams", "launches", "averages", "ledger", "facts"):
        assert seen in page.section(key).text, key


@settings(deadline=None)
@given(traces())
def test_whatever_a_trace_holds_the_page_is_whole_and_harmless(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_harmless(page_of(trace, Path(folder) / "report.html"))


# -- size and files ----------------------------------------------------------------------------------------------------


def big(n: int, n_rows: int) -> Trace:
    """Many kernels of many names with long names, on many rows, with many steps and facts."""
    names = ["k" * 900 + str(i) for i in range(min(n // 2, 3000))]
    rows = [Row(1, i, f"stream {i} " + "s" * 900) for i in range(n_rows)]
    events = [kernel(names[i % len(names)], 100 * i, 100 * i + 50, row=1 + i % n_rows) for i in range(n)]
    events += [step(i, 1000 * i, 1000 * i + 900) for i in range(n // 10)]
    facts = {f"fact {i}": "f" * 5000 for i in range(500)}
    return trace_of(events, rows=[Row(0, 1, "main"), *rows], places=[HOST, DEVICE], facts=facts)


def test_the_page_does_not_grow_with_the_trace(path: Path) -> None:
    sizes = []
    for n in (2_000, 12_000):
        html_report(big(n, 300), path)
        sizes.append(path.stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]
    assert sizes[1] < 600_000


def test_what_is_left_out_is_counted(path: Path) -> None:
    page = page_of(big(2_000, 300), path, most=5)
    assert "The first 5 of 1000 rows." in page.section("device-time").text
    assert len(page.section("device-time").table()) == 5
    assert "276 less busy rows are left out." in page.section("timeline").text
    assert "440 more facts are left out." in page.section("facts").text


def test_steps_that_are_too_many_for_columns_are_shown_as_means(path: Path) -> None:
    trace = trace_of([step(i, 1000 * i, 1000 * i + 100 * (1 + i % 2)) for i in range(1000)])
    section = page_of(trace, path).section("steps")
    picture = next(one for one in section.all("svg") if one.attributes["class"] == "columns")
    assert {one.text for one in picture.all("title")} == {"mean: 150 ns"}
    assert "1\u202f000 steps, 100 ns to 200 ns, 150 ns on average." in section.text


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no directory"):
        html_report(small(), tmp_path / "nowhere" / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_the_same_trace_makes_the_same_page(tmp_path: Path) -> None:
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for page in pages:
        html_report(small(), page)
    assert pages[0].read_bytes() == pages[1].read_bytes()


@each_public_trace
def test_real_traces_make_whole_pages_with_the_totals_of_the_analysis(public_trace: Path, path: Path) -> None:
    trace = load(public_trace)
    page = page_of(trace, path, title=public_trace.name)
    assert_harmless(page)
    assert path.stat().st_size < 300_000
    answer = analysis.device_breakdown(trace)
    shown = [row["total"] for row in page.section("device-time").table()] if len(answer) else []
    assert shown == [str(total) for total in np.asarray(answer.column("total_ns"))[:20].tolist()]
