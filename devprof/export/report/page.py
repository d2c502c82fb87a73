"""`html_report`: the whole page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np

from devprof import analysis, rules
from devprof.export.output import output
from devprof.export.report.account import facts_of, findings_list, ledger, n_lost
from devprof.export.report.bins import span_of
from devprof.export.report.markup import Markup, tag
from devprof.export.report.sections import SECTIONS, Source
from devprof.export.report.style import POLICY, SCRIPT, STYLE
from devprof.export.report.units import count_text, cut, share_text, time_text
from devprof.rules import Finding, Severity
from devprof.store import Trace

__all__ = ["html_report"]

_MOST_PLACES = 16
_MOST_STREAMS = 2


def html_report(trace: Trace, path: str | os.PathLike[str], *, title: str = "Trace", most: int = 20) -> None:
    """Write a page about a trace: facts, findings, pictures and tables.

    The page is one file that asks no network for anything; its size is bounded whatever the size of the trace.

    Args:
        trace: the trace.
        path: the file's name; with ``.gz`` at its end the file is packed.
        title: what the page is called.
        most: greatest number of rows in a table.

    Raises:
        UsageError: the directory does not exist or may not be written.
        CaptureError: the system could not write the file; an earlier file of that name is untouched.
    """
    # a damaged trace has times at which sums run over; the findings say so, and the page is made all the same
    with np.errstate(all="ignore"):
        source = Source(trace, span_of(trace), most, analysis.steps(trace), analysis.stream_usage(trace))
        page = _page(source, rules.check(trace), cut(title, 200))
    with output(path) as write:
        write("<!doctype html>\n" + page)


def _page(source: Source, findings: list[Finding], title: str) -> Markup:
    sections = list(_sections(source, findings))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", STYLE),
    )
    links = (tag("a", name, href=f"#{key}") for key, name, _ in sections)
    header = tag("header", tag("h1", title), tag("p", _about(source), class_="sub"), tag("nav", *links))
    parts = (tag("section", tag("h2", name), body, id=key) for key, name, body in sections)
    version = source.trace.facts.get("devprof_version")
    made = f"Recorded by devprof {version}." if version else ""
    footer = tag("footer", made, " Click a column's title to sort.")
    body = tag("body", header, tag("main", _tiles(source, findings), *parts), footer, tag("script", SCRIPT))
    return tag("html", head, body, lang="en")


def _sections(source: Source, findings: list[Finding]) -> Iterator[tuple[str, str, Markup]]:
    yield "findings", "Findings", findings_list(findings)
    for section in SECTIONS:
        if body := section.make(source):
            yield section.key, section.title, body
    yield "ledger", "Loss ledger", ledger(source.trace)
    if facts := facts_of(source.trace):
        yield "facts", "Facts", facts


def _about(source: Source) -> str:
    """Return when the trace begins and the places in which something happened."""
    trace = source.trace
    places = [trace.places[number].title for number in np.unique(trace.place).tolist()]
    parts = [_date(source.span.start_ns) if source.span else "", ", ".join(places[:_MOST_PLACES])]
    return cut(" · ".join(filter(None, parts)))


def _date(unix_ns: int) -> str:
    try:
        return f"{datetime.fromtimestamp(unix_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # not a time of this era
        return ""


def _tiles(source: Source, findings: list[Finding]) -> Markup:
    trace, span = source.trace, source.span
    length_ns = span.end_ns - span.start_ns if span else 0
    tiles = [
        _tile(time_text(length_ns), "from the first to the last event"),
        _tile(count_text(len(trace)), f"events on {len(np.unique(trace.row))} rows"),
    ]
    for row in source.streams.sorted_by("busy_ns").take(slice(_MOST_STREAMS)):
        share = min(row["busy_ns"] / max(length_ns, 1), 1)  # of the time that the pictures show, as beside the strips
        tiles.append(_tile(share_text(share), f"{row['device']}, {row['stream'].strip() or 'stream'} busy"))
    worst = max((one.severity for one in findings), default=None)
    kind = "good" if worst is None or worst is Severity.INFO else worst.name.lower()
    tiles.append(_tile(count_text(len(findings)), "findings of the rules", kind))
    lost = n_lost(trace)
    if lost is not None:
        tiles.append(_tile(count_text(lost), "records lost", "error" if lost else "good"))
    return tag("div", *tiles, class_="tiles")


def _tile(number: str, about: str, kind: str = "") -> Markup:
    return tag("div", tag("b", number), tag("span", cut(about, 80)), class_=f"tile {kind}".strip())
