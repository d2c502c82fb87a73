"""How far the times of each rank are moved, so that they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from devprof.errors import UsageError
from devprof.pipeline.ranks.collectives import Calls, collectives, same_calls
from devprof.store import Trace

__all__ = ["ALIGNMENTS", "Align", "Shift", "first_ns", "shifts"]

Align = Literal["clock", "collectives", "none"]
ALIGNMENTS: tuple[Align, ...] = ("clock", "collectives", "none")

_YEAR_2000_NS = 946_684_800 * 10**9


@dataclass(frozen=True, slots=True)
class Shift:
    """What is added to a rank's times.

    Attributes:
        shift_ns: it, ns.
        against: rank that it was found against; None: it was not looked for.
        matched: number of operations that both ranks did, which say so.
        spread_ns: median distance of what they say from `shift_ns`.
    """

    shift_ns: int = 0
    against: int | None = None
    matched: int = 0
    spread_ns: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON values."""
        found = {} if self.against is None else {"against_rank": self.against}
        return {"shift_ns": self.shift_ns, **found, "matched": self.matched, "spread_ns": self.spread_ns}


def shifts(traces: Sequence[Trace], ranks: Sequence[int], align: str) -> list[Shift]:
    """Return how far each trace is moved.

    ``"clock"``: not at all, since times are Unix ns of each machine's clock. ``"none"``: not at all, whatever the times are.
    ``"collectives"``: so that collective operations, which no rank ends before all have begun, end at the same time: by the
    median over those that a rank has in common with the first one, or with one that is moved already.

    Raises:
        UsageError: there is no such way, times are not those of a wall clock, or a rank has no operation in common with others.
    """
    if align not in ALIGNMENTS:
        raise UsageError(f"align is {align!r}; expected one of {', '.join(map(repr, ALIGNMENTS))}")
    if align == "collectives":
        return _by_collectives([collectives(trace) for trace in traces], ranks)
    if align == "clock" and len(traces) > 1:
        _check_wall_clocks(traces, ranks)
    return [Shift()] * len(traces)


def first_ns(trace: Trace) -> int | None:
    """Return when a trace begins: its window, else its first event; None: it has neither."""
    if trace.window_start_ns or trace.window_end_ns:
        return trace.window_start_ns
    return int(trace.start_ns.min()) if len(trace) else None


def _check_wall_clocks(traces: Sequence[Trace], ranks: Sequence[int]) -> None:
    for trace, rank in zip(traces, ranks, strict=True):
        begin = first_ns(trace)
        if begin is not None and begin < _YEAR_2000_NS:
            raise UsageError(
                f"the times of rank {rank} are not those of a wall clock (it begins {begin} ns after 1970), so they say "
                "nothing about other ranks; align='collectives' lines ranks up by what they do together, align='none' leaves "
                "times alone"
            )


def _by_collectives(calls: Sequence[Mapping[str, Calls]], ranks: Sequence[int]) -> list[Shift]:
    found: dict[int, Shift] = {0: Shift()}
    order = [0]
    for against in order:  # grows
        for at in range(len(calls)):
            if at not in found and (offsets := _offsets(calls[against], calls[at])).size:
                median = _median(offsets)
                spread = _median(np.abs(offsets - median))
                found[at] = Shift(found[against].shift_ns + median, ranks[against], len(offsets), spread)
                order.append(at)
    if lost := [ranks[at] for at in range(len(calls)) if at not in found]:
        raise UsageError(
            f"rank {', '.join(map(str, lost))} has no collective operation in common with rank {ranks[0]}, or with one that "
            f"has; found {[sum(map(len, one.values())) for one in calls]} operations in ranks {list(ranks)}. They are known "
            "by the item 'Collective name', which torch records with record_shapes=True, or by their names (c10d::...); "
            "align='clock' trusts the machines' clocks"
        )
    return [found[at] for at in range(len(calls))]


def _offsets(one: Mapping[str, Calls], other: Mapping[str, Calls]) -> npt.NDArray[np.int64]:
    """Return how far the other rank's operations are behind: (m,) int64, ns."""
    parts = [np.empty(0, dtype=np.int64)]
    for group in one.keys() & other.keys():
        mine, theirs = same_calls(one[group], other[group])
        parts.append(one[group].end_ns[mine] - other[group].end_ns[theirs])
    return np.concatenate(parts)


def _median(values: npt.NDArray[np.int64]) -> int:
    """Return the lower median, exact."""
    return int(np.sort(values)[(len(values) - 1) // 2])
