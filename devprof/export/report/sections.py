"""What the page says, section by section. A section of which a trace holds nothing is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from devprof import analysis
from devprof.analysis import CAUSES, Answer
from devprof.analysis.answer import Column
from devprof.analysis.figures import Figure
from devprof.export.report.bins import (
    DEVICE_KINDS,
    HOST_KINDS,
    Span,
    Strip,
    busiest,
    grouped_means,
    memory_bins,
    strips,
)
from devprof.export.report.markup import Markup, joined, tag
from devprof.export.report.pictures import area, columns, figure, legend, ranges, stacked, strip, time_axis
from devprof.export.report.tables import answer_table
from devprof.export.report.units import bytes_text, count_text, cut, share_text, time_text
from devprof.store import HOST_BACKEND, PlaceKind, Trace

__all__ = ["SECTIONS", "Section", "Source"]

_BINS = 400
_MOST_STRIPS = 24
_MOST_MARKS = 60
_MOST_COLUMNS = 100
_MOST_DEVICES = 8


class Source(NamedTuple):
    """What sections are made of.

    Attributes:
        trace: the trace.
        span: the time that pictures show; None: there is none.
        most: greatest number of rows in a table.
        steps: `analysis.steps`.
        streams: `analysis.stream_usage`.
    """

    trace: Trace
    span: Span | None
    most: int
    steps: Answer
    streams: Answer


class Section(NamedTuple):
    """A section: its anchor, its title, and what makes it; that returns nothing where there is nothing to say."""

    key: str
    title: str
    make: Callable[[Source], Markup]


def _timeline(source: Source) -> Markup:
    trace, span = source.trace, source.span
    found = [] if span is None else list(strips(trace, span, _BINS))
    if span is None or not found:
        return Markup()
    shown = busiest(found, trace, _MOST_STRIPS)
    marks = [int(at) for at in source.steps.column("start_ns")[:_MOST_MARKS] if span.start_ns < at < span.end_ns]
    rows = [
        part for i, one in enumerate(shown) for part in _strip_row(trace, shown[i - 1] if i else None, one, span, marks)
    ]
    names = {f"k{i}": name for i, name in enumerate(DEVICE_KINDS)} | {
        f"h{i}": name for i, name in enumerate(HOST_KINDS)
    }
    left_out = len(found) - len(shown)
    note = f" {left_out} less busy rows are left out." if left_out else ""
    text = "The height is the part of the time in which a row was busy; lines are where steps begin." + note
    grid = tag("div", *rows, time_axis(span), class_="rows")
    return joined(figure(grid, legend(names)), tag("p", text, class_="note"))


def _strip_row(trace: Trace, before: Strip | None, one: Strip, span: Span, marks: Sequence[int]) -> list[Markup]:
    row = trace.rows[one.row]
    place = trace.places[row.place]
    heads = [] if before and trace.rows[before.row].place == row.place else [_place_head(place.title, place.name)]
    name = row.name.strip() or f"row {row.id}"
    kind = "device" if place.kind is PlaceKind.DEVICE else "host"
    return [
        *heads,
        tag("div", cut(name), class_="name", title=cut(name)),
        tag("div", strip(one, span, marks), class_=kind),
        tag("div", share_text(one.busy_ns / (span.end_ns - span.start_ns)), class_="n"),
    ]


def _place_head(title: str, name: str) -> Markup:
    return tag("div", cut(title if name in ("", title) else f"{title} · {name}", 120), class_="place")


def _device_time(source: Source) -> Markup:
    answer = analysis.device_breakdown(source.trace)
    return answer_table(answer, source.most) if len(answer) else Markup()


def _streams(source: Source) -> Markup:
    answer = source.streams
    if not len(answer):
        return Markup()
    parts = {cause: f"idle_{cause.replace(' ', '_')}_ns" for cause in CAUSES}
    rows = [part for row in answer.take(slice(source.most)) for part in _stream_row(row, parts)]
    names = {"k0": "busy"} | {f"c{i}": f"idle: {cause}" for i, cause in enumerate(CAUSES)}
    text = "From each stream's first work to its last: busy, and why not."
    return joined(
        tag("p", text, class_="sub"),
        figure(tag("div", *rows, class_="rows"), legend(names)),
        tag("h3", "In numbers"),
        answer_table(answer, source.most),
    )


def _stream_row(row: dict[str, object], parts: dict[str, str]) -> list[Markup]:
    spent = {"busy": ("k0", "busy_ns")} | {cause: (f"c{i}", key) for i, (cause, key) in enumerate(parts.items())}
    sizes = [(kind, cause, float(str(row[key]))) for cause, (kind, key) in spent.items()]
    shown = [(kind, f"{cause}: {time_text(size)}", size) for kind, cause, size in sizes]
    name = f"{row['device']}, {str(row['stream']).strip() or 'stream'}"
    whole = float(str(row["span_ns"]))
    busy = tag("div", share_text(float(str(row["busy_share"]))), class_="n")
    return [tag("div", cut(name), class_="name", title=cut(name)), tag("div", stacked(shown, whole)), busy]


def _overlap(source: Source) -> Markup:
    answer = analysis.overlap(source.trace)
    text = "Hidden is the part of copies and of communication during which the device also computes."
    return joined(tag("p", text, class_="sub"), answer_table(answer, source.most)) if len(answer) else Markup()


def _launches(source: Source) -> Markup:
    answer = analysis.launch_latency(source.trace).sorted_by("count")
    if not len(answer):
        return Markup()
    shown = answer.take(slice(source.most))
    spread = ranges([(row["min_ns"], row["median_ns"], row["p95_ns"], row["max_ns"]) for row in shown])
    text = (
        "From the start of a launch on the host to the start of its work. The range is logarithmic: least to most, and in it \
median to 95th percentile."
    )
    return joined(
        tag("p", text, class_="sub"), answer_table(answer, source.most, pictures={"range (logarithmic)": spread})
    )


def _steps(source: Source) -> Markup:
    answer = source.steps
    if not len(answer):
        return Markup()
    duration_ns = np.asarray(answer.column("duration_ns"), dtype=np.int64)
    busy = [
        np.array([value or 0 for value in column], dtype=np.int64)
        for key, column in answer.columns.items()
        if key.startswith("busy ")
    ]
    busiest_ns = np.max(busy, axis=0) if busy else np.zeros_like(duration_ns)
    means, parts = grouped_means(duration_ns, _MOST_COLUMNS), grouped_means(busiest_ns, _MOST_COLUMNS)
    names = _step_names(answer)
    each = len(means) == len(names)
    says = [f"{f'step {names[i]}' if each else 'mean'}: {time_text(mean)}" for i, mean in enumerate(means.tolist())]
    text = (
        f"{count_text(len(answer))} steps, {time_text(duration_ns.min())} to {time_text(duration_ns.max())}, "
        f"{time_text(duration_ns.mean())} on average. In the stronger colour: the busiest device was busy."
    )
    ends = tag("div", tag("span", f"steps {names[0]} to {names[-1]}"), class_="ends")
    top = tag("div", tag("span", time_text(float(means.max()))), class_="ends")
    longest = Answer(answer.title, {k: c for k, c in answer.columns.items() if k != "start_ns"}).sorted_by(
        "duration_ns"
    )
    title = "Longest steps" if len(answer) > source.most else "In numbers"
    return joined(
        tag("p", text, class_="sub"),
        figure(top, columns(means, parts, says), ends),
        tag("h3", title),
        answer_table(longest, source.most),
    )


def _step_names(answer: Answer) -> list[str]:
    """Return the number of each step, with whose it is where there are several ranks or processes."""
    numbers = [str(number) for number in answer.column("step")]
    whose = next((key for key in ("rank", "process") if key in answer.columns), None)
    if whose is None:
        return numbers
    owners = answer.column(whose)
    return [f"{number} of {whose} {cut(str(owner), 40)}" for number, owner in zip(numbers, owners, strict=True)]


def _memory(source: Source) -> Markup:
    span = source.span
    if span is None:
        return Markup()
    curves = sorted(analysis.memory_curve(source.trace).items(), key=lambda item: -item[1].peak_bytes)
    parts = []
    for name, curve in curves[:_MOST_DEVICES]:
        allocated, reserved = memory_bins(curve, span, _BINS)
        head = f"{cut(name, 80)}: at most {bytes_text(curve.peak_bytes)}"
        top = tag("div", tag("span", bytes_text(max(allocated.max(), reserved.max()))), class_="ends")
        picture = figure(top, area(allocated, reserved), time_axis(span))
        parts.append(joined(tag("h3", head, data_value=curve.peak_bytes), picture))
    names = {"k0": "allocated", "k2": "reserved"}
    return joined(*parts, legend(names)) if parts else Markup()


def _averages(source: Source) -> Markup:
    """Return the rows of the host; device work has a table of its own."""
    found = analysis.key_averages(source.trace)
    host = np.flatnonzero(found.figures.backend_number[found.place] == 0)
    if not len(host):
        return Markup()

    def sums(backends: Sequence[str], *, own: bool) -> Column:
        return sum((found.column(Figure("time", name, own))[host] for name in backends), np.zeros(len(host), np.int64))

    keys, backends = found.figures.names.keys, found.figures.backends
    table: dict[str, Column] = {
        "name": [keys[number] for number in found.figures.key[found.place[host]].tolist()],
        "calls": found.counts[host],
        "self_cpu_ns": sums([HOST_BACKEND], own=True),
        "cpu_total_ns": sums([HOST_BACKEND], own=False),
    }
    if backends:
        table |= {"self_device_ns": sums(backends, own=True), "device_total_ns": sums(backends, own=False)}
    text = "Ops, ranges and calls on the host, with the device time of what they launched."
    answer = Answer("key averages", table).sorted_by("self_cpu_ns")
    return joined(tag("p", text, class_="sub"), answer_table(answer, 2 * source.most))


SECTIONS = (
    Section("timeline", "Timeline", _timeline),
    Section("device-time", "Device time by name", _device_time),
    Section("streams", "Streams", _streams),
    Section("overlap", "Overlap", _overlap),
    Section("launches", "Launch latency", _launches),
    Section("steps", "Steps", _steps),
    Section("memory", "Memory", _memory),
    Section("averages", "Key averages", _averages),
)
"""The sections on what happened, in the order of the page."""
