"""Numbers as people read them."""

from __future__ import annotations

__all__ = ["bytes_text", "count_text", "cut", "share_text", "time_text", "title_of"]

_TIMES = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))
_SIZES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_MOST_LETTERS = 300


def time_text(time_ns: float) -> str:
    """Return a time in the greatest unit in which it is at least 1, with four digits or more."""
    for unit, size in _TIMES:
        if abs(time_ns) >= size:
            return f"{_four_digits(time_ns / size)} {unit}"
    return f"{time_ns:.0f} ns"


def bytes_text(size_bytes: float) -> str:
    """Return a size in the greatest unit in which it is at least 1."""
    for unit, size in _SIZES:
        if abs(size_bytes) >= size:
            return f"{_four_digits(size_bytes / size)} {unit}"
    return f"{size_bytes:.0f} B"


def count_text(count: int) -> str:
    """Return a count with its thousands apart."""
    return f"{count:,}".replace(",", "\u202f")


def share_text(share: float) -> str:
    """Return a part of 1 in per cent."""
    return f"{100 * share:.1f} %"


def cut(text: str, most: int = _MOST_LETTERS) -> str:
    """Return a text, or its beginning where it is long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def title_of(column: str) -> str:
    """Return what a column of an answer is called on the page."""
    return column.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")


def _four_digits(value: float) -> str:
    digits = len(str(int(abs(value))))
    return f"{value:.{max(0, 4 - digits)}f}"
