"""Pictures: SVG shapes that stretch to the width of the page; every word and number stands beside them as HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from devprof.export.report.bins import Span, Strip
from devprof.export.report.markup import Markup, joined, tag
from devprof.export.report.units import time_text

__all__ = ["area", "bar", "columns", "figure", "legend", "ranges", "stacked", "strip", "time_axis"]

_WIDTH = 1000
_FEW_COLUMNS = 16
_LEAST_HEIGHT = 4
"""Height of 100 that work has however short it is, so that it is seen."""


def _svg(name: str, height: float, *shapes: object, width: float = _WIDTH, says: str | None = None) -> Markup:
    """Return a picture that fills its box; `says` is read aloud and shown where the pointer rests."""
    title = (tag("title", says),) if says else ()
    return tag(
        "svg",
        *title,
        *shapes,
        class_=name,
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        preserveAspectRatio="none",
        role="img" if says else None,
        aria_hidden=None if says else "true",
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def _rect(name: str, x: float, width: float, y: float, height: float, says: str = "") -> Markup:
    title = (tag("title", says),) if says else ()
    return tag("rect", *title, class_=name, x=_number(x), y=_number(y), width=_number(width), height=_number(height))


def _stairs(heights: npt.NDArray[np.int64], floor: int) -> str:
    """Return the outline of bars that stand side by side, each 1 wide."""
    at = np.flatnonzero(np.append(True, heights[1:] != heights[:-1]))
    ends = np.append(at[1:], len(heights))
    middle = "".join(
        f"V{floor - height}H{end}" for height, end in zip(heights[at].tolist(), ends.tolist(), strict=True)
    )
    return f"M0 {floor}{middle}V{floor}Z"


def strip(found: Strip, span: Span, marks_ns: Sequence[int]) -> Markup:
    """Return how busy a row was over time, one colour for each kind, and lines where steps begin."""
    shapes, so_far = [], np.zeros(1)
    for number, (kind, shares) in enumerate(found.shares.items()):
        so_far = so_far + shares
        heights = np.minimum(np.rint(so_far * 100), 100).astype(np.int64)
        heights[(so_far > 0) & (heights < _LEAST_HEIGHT)] = _LEAST_HEIGHT
        if shares.any():
            shapes.append(tag("path", tag("title", kind), class_=f"k{number}", d=_stairs(heights, 100)))
    n_bins = len(so_far)
    lines = "".join(f"M{_number(span.share(at_ns) * n_bins)} 0V100" for at_ns in marks_ns)
    marks = tag("path", class_="mark", d=lines) if lines else ""
    return _svg("strip", 100, *reversed(shapes), marks, width=n_bins)


def time_axis(span: Span) -> Markup:
    """Return the axis below strips: times since their beginning."""
    length_ns = span.end_ns - span.start_ns
    step_ns = _round_step(length_ns / 6)
    ticks = [step_ns * i for i in range(int(length_ns // step_ns) + 1)]
    marks = (tag("span", time_text(at), style=f"left:{100 * at / length_ns:.2f}%") for at in ticks)
    return tag("div", *marks, class_="axis")


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(rough, 1)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def legend(names: Mapping[str, str]) -> Markup:
    """Return what the colours mean: names by class."""
    return tag("p", *(tag("span", tag("i", class_=f"{key}"), name) for key, name in names.items()), class_="legend")


def bar(share: float, kind: str = "k0") -> Markup:
    """Return a bar as long as a part of 1."""
    return _svg("bar", 10, _rect(kind, 0, _WIDTH * min(max(share, 0), 1), 0, 10))


def stacked(parts: Sequence[tuple[str, str, float]], whole: float) -> Markup:
    """Return one bar of several parts.

    Args:
        parts: class, what it says, and how much it is.
        whole: what the whole width is.
    """
    shapes, at = [], 0.0
    for kind, says, size in parts:
        width = _WIDTH * size / whole if whole else 0
        if width > 0:
            shapes.append(_rect(kind, at, width, 0, 20, says))
        at += width
    return _svg("stacked", 20, *shapes)


def columns(values: npt.NDArray[np.float64], parts: npt.NDArray[np.float64], says: Sequence[str]) -> Markup:
    """Return columns side by side, each with a part of it in a stronger colour."""
    most = max(float(values.max(initial=0)), 1)
    width = _WIDTH / max(len(values), _FEW_COLUMNS)
    gap = min(width * 0.15, 4)
    shapes = []
    for i, (value, part) in enumerate(zip(values.tolist(), parts.tolist(), strict=True)):
        for kind, size in (("light", value), ("k0", part)):
            height = 100 * size / most
            shapes.append(_rect(kind, i * width + gap / 2, width - gap, 100 - height, height, says[i]))
    return _svg("columns", 100, *shapes)


def area(filled: npt.NDArray[np.int64], line: npt.NDArray[np.int64]) -> Markup:
    """Return a curve with what is below it filled, and another curve as a line."""
    most = max(int(filled.max(initial=0)), int(line.max(initial=0)), 1)
    scaled = [np.rint(values / most * 1000).astype(np.int64) for values in (filled, line)]
    shapes = [tag("path", class_="k0", d=_stairs(scaled[0], 1000))]
    if line.any():
        shapes.append(tag("path", class_="line", d=_stairs(scaled[1], 1000)))
    return _svg("area", 1000, *shapes, width=len(filled))


def ranges(rows: Sequence[tuple[float, float, float, float]]) -> list[Markup]:
    """Return for each row of least, median, 95th percentile and most its range, all on one logarithmic scale."""
    positive = [value for row in rows for value in row if value > 0]
    if not positive:
        return [Markup() for _ in rows]
    low, high = math.log10(min(positive)), math.log10(max(positive))

    def place(value: float) -> float:
        return _WIDTH * (0.02 + 0.94 * (math.log10(max(value, 10**low)) - low) / max(high - low, 1e-9))

    return [
        _svg(
            "range",
            20,
            _rect("thin", place(least), max(place(most) - place(least), 4), 8, 4),
            _rect("k0", place(median), max(place(p95) - place(median), 4), 3, 14),
            _rect("tick", place(median) - 2, 5, 1, 18),
        )
        for least, median, p95, most in rows
    ]


def figure(*parts: object) -> Markup:
    """Return a picture with what belongs to it."""
    return tag("figure", joined(*parts))
