"""`merge`: the traces of several ranks as one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.errors import UsageError
from devprof.model.interning import Interner
from devprof.pipeline.files import load
from devprof.pipeline.ranks.clocks import Align, Shift, first_ns, shifts
from devprof.pipeline.ranks.columns import Allocate, Part, joined_columns, joined_items
from devprof.pipeline.ranks.numbers import highest_numbers, renumberings
from devprof.pipeline.ranks.places import Placed, placed
from devprof.store import Trace

__all__ = ["merge", "merged", "rank_of"]

Source = Trace | str | os.PathLike[str]

_MOST_EVENTS = 2**31 - 1
_FAR_APART_NS = 1_000_000_000


def merge(sources: Iterable[Source], *, align: Align = "clock") -> Trace:
    """Return the traces of several ranks, or processes, as one.

    The rank of each is the one that it says it is (``distributedInfo``); where one says none, or two the same, they are
    numbered as they are given. Places, op ids, launch and arrow numbers, sequence numbers and ids of Python calls are
    renumbered so that no two ranks have the same; the first trace keeps its own. Names of places say the rank, and the real
    number where it changed.

    ``facts`` hold what all ranks agree on; ``facts["ranks"]`` one entry per rank: ``rank``, ``file``, ``events``, ``places``
    (indices), ``window_start_ns`` and ``window_end_ns`` as they were, ``begins_after_ns`` (how long after the first one it
    begins, by the recorded clocks), ``shift_ns`` (what was added to its times) with what it rests on, and ``facts``, its own.
    ``facts["alignment"]`` says how: ``by``, ``reference_rank``, ``notes``.

    Args:
        sources: traces or files in any format that devprof reads, one per rank; all are in memory at once, see `merge_files`.
        align: ``"clock"``: by the recorded wall-clock times; ``"collectives"``: by what the ranks did together; ``"none"``:
            times are left as they are, whatever they count from.

    Raises:
        UsageError: there is no trace, one is merged already, the alignment is unknown, or cannot be found.
        TraceFileError: a file cannot be opened, or is no trace.
    """
    given = list(sources)
    traces = [one if isinstance(one, Trace) else load(one) for one in given]
    names = ["" if isinstance(one, Trace) else os.fspath(one) for one in given]
    return merged(traces, names, align=align)


def merged(
    traces: Sequence[Trace],
    names: Sequence[str],
    *,
    align: str,
    allocate: Allocate = np.empty,
) -> Trace:
    """Do what `merge` says.

    Args:
        traces: one for each rank.
        names: the file of each, empty: none.
        align: see `merge`.
        allocate: gives the arrays that the merged trace is made of.
    """
    _check(traces, names)
    ranks = _ranks(traces)
    moves = shifts(traces, ranks, align)
    places = placed(traces, ranks)
    texts = Interner()
    parts = _parts(traces, places, moves, texts)
    columns: dict[str, Any] = joined_columns(parts, allocate)
    items, counters = (joined_items(parts, which, texts, allocate) for which in ("items", "counters"))
    windows = [_window(trace, move) for trace, move in zip(traces, moves, strict=True)]
    known = [window for window in windows if window is not None]
    return Trace(
        strings=texts.table,
        **columns,
        places=tuple(places.places),
        rows=tuple(places.rows),
        items=items,
        counters=counters,
        window_start_ns=min((start for start, _ in known), default=0),
        window_end_ns=max((end for _, end in known), default=0),
        facts=_facts(traces, names, ranks, places, moves, windows, align),
    )


def rank_of(trace: Trace) -> int | None:
    """Return the rank that a trace says it is of; None: it does not say."""
    metadata = trace.facts.get("metadata")
    job = metadata.get("distributedInfo") if isinstance(metadata, Mapping) else None
    rank = job.get("rank") if isinstance(job, Mapping) else None
    return rank if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 else None


def _check(traces: Sequence[Trace], names: Sequence[str]) -> None:
    if not traces:
        raise UsageError("there is nothing to merge; give one trace per rank")
    for at, trace in enumerate(traces):
        if "ranks" in trace.facts:
            what = names[at] or f"trace {at}"
            raise UsageError(f"{what} is merged already; merge the traces of all ranks at once")
    if (events := sum(map(len, traces))) > _MOST_EVENTS:
        raise UsageError(f"the ranks have {events:,} events together, and a trace holds {_MOST_EVENTS:,}; merge fewer")


def _ranks(traces: Sequence[Trace]) -> list[int]:
    said = [rank_of(trace) for trace in traces]
    known = [rank for rank in said if rank is not None]
    return known if len(set(known)) == len(traces) else list(range(len(traces)))


def _parts(traces: Sequence[Trace], places: Placed, moves: Sequence[Shift], texts: Interner) -> list[Part]:
    parts, first, taken = [], 0, highest_numbers()
    for trace, row_of, move in zip(traces, places.row_of, moves, strict=True):
        numbers: npt.NDArray[np.int32] = np.array([texts.index(text) for text in trace.strings], dtype=np.int32)
        renumbering, taken = renumberings(trace, taken)
        parts.append(Part(trace, first, numbers, row_of, move.shift_ns, renumbering))
        first += len(trace)
    return parts


def _window(trace: Trace, move: Shift) -> tuple[int, int] | None:
    """Return when a rank was recorded, by the merged clock."""
    if trace.window_start_ns or trace.window_end_ns:
        return trace.window_start_ns + move.shift_ns, trace.window_end_ns + move.shift_ns
    if not len(trace):
        return None
    return int(trace.start_ns.min()) + move.shift_ns, int(trace.end_ns.max()) + move.shift_ns


def _facts(
    traces: Sequence[Trace],
    names: Sequence[str],
    ranks: Sequence[int],
    places: Placed,
    moves: Sequence[Shift],
    windows: Sequence[tuple[int, int] | None],
    align: str,
) -> dict[str, object]:
    begin_ns = next((at for at in map(first_ns, traces) if at is not None), 0)
    entries = []
    for at, trace in enumerate(traces):
        entry: dict[str, object] = {"rank": ranks[at], "file": names[at], "events": len(trace)}
        entry |= {"places": places.places_of[at]}
        entry |= {"window_start_ns": trace.window_start_ns, "window_end_ns": trace.window_end_ns}
        entry |= {"begins_after_ns": (first_ns(trace) or begin_ns) - begin_ns, **moves[at].as_dict()}
        entries.append({**entry, "facts": dict(trace.facts)})
    notes = _notes(traces, ranks, windows)
    alignment = {"by": align, "reference_rank": ranks[0], "notes": notes}
    return {**_agreed([trace.facts for trace in traces]), "alignment": alignment, "ranks": entries}


def _notes(traces: Sequence[Trace], ranks: Sequence[int], windows: Sequence[tuple[int, int] | None]) -> list[str]:
    notes = []
    if len(traces) > 1 and [rank_of(trace) for trace in traces] != list(ranks):
        notes.append("not every trace says its rank, or two say the same: they are numbered as they were given")
    for rank, window in zip(ranks[1:], windows[1:], strict=True):
        if window is None or windows[0] is None:
            continue
        apart_ns = max(window[0] - windows[0][1], windows[0][0] - window[1])
        if apart_ns > _FAR_APART_NS:
            notes.append(
                f"rank {rank} was recorded {apart_ns / 1e9:.3f} s apart from rank {ranks[0]}: was it the same run, and do "
                "their clocks agree?"
            )
    return notes


def _agreed(facts: Sequence[Mapping[str, object]], *, inside: bool = False) -> dict[str, object]:
    """Return what all say alike; of metadata, and `inside` it, entry by entry."""
    agreed: dict[str, object] = {}
    for key, value in facts[0].items():
        values = [one.get(key) for one in facts]
        tables = [one for one in values if isinstance(one, Mapping)]
        if all(one == value for one in values):
            agreed[key] = value
        elif (inside or key == "metadata") and len(tables) == len(facts):
            agreed[key] = _agreed(tables, inside=True)
    return agreed
