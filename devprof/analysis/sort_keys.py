"""The names of figures: what a row's attribute or a table's `sort_by` asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from devprof.analysis.figures import FLOPS, Figure
from devprof.errors import UsageError
from devprof.store import HOST_BACKEND

__all__ = ["COUNT", "Asked", "asked_of", "sort_key"]

COUNT = "count"

_OLD_SPELLINGS = ("cuda", "xpu", "privateuse1")
"""Words that torch takes for "device", whichever device it is."""

_NAME = re.compile(r"(?P<own>self_)?(?P<whose>\w+?)_(?P<what>time_total|time|memory_usage)")


class Asked(NamedTuple):
    """What a name asks for.

    Attributes:
        figures: to be added up.
        per_call: divided by the number of calls.
    """

    figures: tuple[Figure, ...]
    per_call: bool = False


def asked_of(name: str, backends: Sequence[str]) -> Asked | None:
    """Read a name such as "self_cpu_time_total" or "cuda_time"; None where it is none.

    Args:
        name: the name, in torch's spelling, old or new, or with the name of a backend of the trace.
        backends: the trace's backends. The word "device" means all of them.
    """
    if name == "flops":
        return Asked((FLOPS,))
    match = _NAME.fullmatch(name)
    if match is None or (match["own"] and match["what"] == "time"):
        return None
    whose = match["whose"]
    if whose == "cpu":
        chosen: Sequence[str] = (HOST_BACKEND,)
    elif whose in backends:
        chosen = (whose,)
    elif whose == "device" or whose in _OLD_SPELLINGS:
        chosen = backends
    else:
        return None
    kind = "memory" if match["what"] == "memory_usage" else "time"
    figures = tuple(Figure(kind, backend, bool(match["own"])) for backend in chosen)
    return Asked(figures, per_call=match["what"] == "time")


def sort_key(name: str, backends: Sequence[str]) -> Asked | None:
    """Read a table's `sort_by`; None means the number of calls.

    Raises:
        UsageError: it is no figure; the message lists those that there are.
    """
    if name == COUNT:
        return None
    asked = asked_of(name, backends) if isinstance(name, str) else None
    if asked is None:
        raise UsageError(f"a table cannot be sorted by {name!r}; it can be sorted by {', '.join(_known(backends))}")
    return asked


def _known(backends: Sequence[str]) -> list[str]:
    words = ["cpu", "device", *(backends if len(backends) > 1 else ())]
    of_each = ("{}_time", "{}_time_total", "self_{}_time_total", "{}_memory_usage", "self_{}_memory_usage")
    return [text.format(word) for word in words for text in of_each] + ["flops", COUNT]
