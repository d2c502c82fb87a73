"""Apply the capture window: a record belongs to the window it started in, and keeps its true end.

Kineto applies no window to a child profiler's records, so this is the only place where it happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from devprof.link.columns import Bools, Longs, longs, split
from devprof.link.join import LaunchJoin
from devprof.model import ActivityBatch
from devprof.model.reasons import AFTER_WINDOW, BEFORE_WINDOW, LAUNCHED_OUTSIDE_WINDOW

__all__ = ["WindowResult", "apply_window"]


@dataclass(frozen=True, slots=True, eq=False)
class WindowResult:
    """What stays and what goes.

    Attributes:
        masks: per batch, (n,) bool: records that stay.
        n_kept: how many stay.
        dropped: how many go, by reason; only reasons that occurred.
    """

    masks: tuple[Bools, ...]
    n_kept: int
    dropped: Mapping[str, int]

    @property
    def all_kept(self) -> bool:
        """True where nothing goes."""
        return not self.dropped

    def apply(self, batches: Sequence[ActivityBatch], join: LaunchJoin) -> tuple[list[ActivityBatch], LaunchJoin]:
        """Return the batches and the join of what stays; what loses nothing is passed through as it is."""
        if self.all_kept:
            return list(batches), join
        kept = [batch if mask.all() else batch.take(mask) for batch, mask in zip(batches, self.masks, strict=True)]
        return kept, join.take(np.concatenate(self.masks))


def apply_window(batches: Sequence[ActivityBatch], join: LaunchJoin, start_ns: int, end_ns: int) -> WindowResult:
    """Decide which records belong to a capture window.

    A record stays if it started in the window. A device record whose launch is known goes where its launch goes: it stays
    even if it started after the window's end, and it leaves with a launch outside; but it never stays if it started before
    the window. Ends do not matter.

    Args:
        batches: all batches of one plugin in one session, in Unix ns.
        join: their join.
        start_ns: start of the window, Unix ns, inclusive.
        end_ns: end of the window, Unix ns, inclusive.
    """
    start = longs(batches, "start")
    early = start < start_ns
    inside = ~early & (start <= end_ns)
    launched = np.flatnonzero(join.launch >= 0)
    launch_inside = inside[join.launch[launched]]
    keep = inside.copy()
    keep[launched] = ~early[launched] & launch_inside
    return WindowResult(tuple(split(keep, join.bounds)), int(np.count_nonzero(keep)), _reasons(keep, early, launched))


def _reasons(keep: Bools, early: Bools, launched: Longs) -> dict[str, int]:
    gone = ~keep
    n_early = int(np.count_nonzero(early))
    n_launched = int(np.count_nonzero(gone[launched] & ~early[launched]))
    n_late = int(np.count_nonzero(gone)) - n_early - n_launched
    counts = {BEFORE_WINDOW: n_early, AFTER_WINDOW: n_late, LAUNCHED_OUTSIDE_WINDOW: n_launched}
    return {reason: count for reason, count in counts.items() if count}
