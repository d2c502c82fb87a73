"""What an export leaves out of a trace, counted: what the format has no place for, and what is no whole thing in the trace."""

from __future__ import annotations

import logging
import os

import numpy as np
import numpy.typing as npt

from devprof.store import ItemKind, Trace

__all__ = ["LeftOut", "arrows_left_out", "not_finite", "of_samples", "said"]

LeftOut = dict[str, int]
"""What is not in a file and how many, by what it is; only what there is at all."""

_log = logging.getLogger("devprof.export")


def said(path: str | os.PathLike[str], *counts: LeftOut) -> LeftOut:
    """Return what was left out of a file, and log it.

    Args:
        path: the file.
        counts: what was left out, with zeros.
    """
    found = {what: count for some in counts for what, count in some.items() if count}
    if found:
        _log.info("%s does not have: %s", os.fspath(path), ", ".join(f"{n} {what}" for what, n in found.items()))
    return found


def not_finite(trace: Trace) -> LeftOut:
    """Count numbers that JSON has no word for."""
    columns = [column for column in [*trace.items.values(), *trace.counters.values()] if column.kind is ItemKind.FLOAT]
    return {"numbers that are not finite": sum(int((~np.isfinite(column.values)).sum()) for column in columns)}


def of_samples(trace: Trace, is_sample: npt.NDArray[np.bool_]) -> LeftOut:
    """Count args of counters' samples, which have their values only.

    Args:
        trace: n events.
        is_sample: (n,) bool.
    """
    return {"args of counters' samples": sum(int(is_sample[one.events].sum()) for one in trace.items.values())}


def arrows_left_out(*, single: int, repeated: int, open_ended: int = 0, unknown: int = 0) -> LeftOut:
    """Name ends of arrows that make no arrow.

    Args:
        single: ends without a start.
        repeated: starts of an arrow that has started before.
        open_ended: starts that end nowhere.
        unknown: ends of a kind, or at a place, that the format does not have.
    """
    return {
        "ends of arrows without a start": single,
        "starts of arrows without an end": open_ended,
        "further starts of an arrow": repeated,
        "ends of arrows of a kind or at a place that the format does not have": unknown,
    }
