"""`link`: the columns that a trace needs beside a plugin's records.

Recipes of Kineto's trace model: device work is linked to its op; a launch and its work share a number, which no other
record has; every record has a number that is not zero and is outside torch's ids, because an unlinked host record with id 0
would inherit an op's id and count that op's kernels twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from devprof.errors import UsageError
from devprof.link.columns import LAUNCH, WORK, Bools, Longs, longs, on_device, per_distinct, split, stitch
from devprof.link.flows import Arrows, draw_arrows
from devprof.link.join import LaunchJoin
from devprof.model import ActivityBatch

__all__ = ["LinkCounts", "LinkResult", "LinkedColumns", "link"]

_GREATEST_NUMBER = 2**31 - 1
"""Kineto keeps a record's id as int32, and flow ids are matched on 32 bits."""

KnownOps = Callable[[Longs], Bools]


@dataclass(frozen=True, slots=True, eq=False)
class LinkedColumns:
    """Link columns of one batch, each of its length n.

    Attributes:
        linked: (n,) int64, op id, 0: none or unknown to the host.
        linked_user: (n,) int64, user id, 0: none.
        id: (n,) int64, launch number: equal on a launch and its device records, never 0, positive int32.
        flow_id: (n,) int64, 0: no arrow.
        flow_type: (n,) uint8.
        flow_start: (n,) uint8, 1 where the arrow leaves.
        device: (n,) int32, device index with the plugin's offset; host records keep theirs.
        skewed: (n,) bool, device work that seems to start before its launch, by more than the clock's uncertainty.
    """

    linked: Longs
    linked_user: Longs
    id: Longs
    flow_id: Longs
    flow_type: npt.NDArray[np.uint8]
    flow_start: npt.NDArray[np.uint8]
    device: npt.NDArray[np.int32]
    skewed: Bools

    def apply_to(self, batch: ActivityBatch) -> ActivityBatch:
        """Return the batch with these columns in place of its own."""
        return replace(
            batch,
            linked=self.linked,
            linked_user=self.linked_user,
            id=self.id,
            flow_id=self.flow_id,
            flow_type=self.flow_type,
            flow_start=self.flow_start,
            device=self.device,
        )


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """What linking found. "Work" is kernels, copies and sets.

    Attributes:
        work: device work.
        linked: work with a known op.
        unlinked: work without.
        unknown_ops: records whose op id the host does not know.
        inherited: records that took a missing op id or user id from their launch or their work.
        launches: host records with work on a device.
        calls_without_work: host records without.
        work_without_launch: work whose launch is not among the records.
        shared_numbers: host records that carry a launch's number and are not the launch.
        duplicate_starts: starts of a plugin's own arrows that were left out, because the key was taken.
        loose_ends: ends of a plugin's own arrows that were left out, because the other end is missing.
        skewed: work that seems to start before its launch.
        other_ops: work that names another known op than its launch does.
    """

    work: int = 0
    linked: int = 0
    unlinked: int = 0
    unknown_ops: int = 0
    inherited: int = 0
    launches: int = 0
    calls_without_work: int = 0
    work_without_launch: int = 0
    shared_numbers: int = 0
    duplicate_starts: int = 0
    loose_ends: int = 0
    skewed: int = 0
    other_ops: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class LinkResult:
    """What `link` found.

    Attributes:
        columns: link columns, one entry per batch.
        counts: totals over all batches.
        next_id: first number that is still free; the next plugin's `launch_base`.
        user_parents: enclosing user range of each user id, as given.
    """

    columns: tuple[LinkedColumns, ...]
    counts: LinkCounts
    next_id: int
    user_parents: Mapping[int, int] = field(default_factory=dict)

    def apply_to(self, batches: Sequence[ActivityBatch]) -> list[ActivityBatch]:
        """Return the batches with the link columns in place of their own."""
        return [columns.apply_to(batch) for columns, batch in zip(self.columns, batches, strict=True)]


def link(
    batches: Sequence[ActivityBatch],
    join: LaunchJoin,
    *,
    known_ops: KnownOps | None = None,
    launch_base: int = 2**30,
    user_parents: Mapping[int, int] | None = None,
    device_offset: int = 0,
    uncertainty_ns: int = 0,
) -> LinkResult:
    """Link the records of one plugin in one session.

    Args:
        batches: batches in Unix ns, inside the window.
        join: their join (`WindowResult.apply` gives both).
        known_ops: says of distinct op ids, ascending int64, which ones the host recorded; None: all of them. Never asked for 0.
        launch_base: first launch number to give out.
        user_parents: enclosing user range of each user id, 0 or absent: none; kept for `annotation_spans`.
        device_offset: added to the device index of records on devices.
        uncertainty_ns: uncertainty of the plugin's clock; work may seem to start that much before its launch.

    Raises:
        UsageError: the launch numbers would not fit a positive int32.
    """
    ops, n_unknown = _known(longs(batches, "linked"), known_ops)
    other_ops = _other_ops(ops, join)
    ops, users, n_inherited = _inherited(ops, longs(batches, "linked_user"), join)
    number, next_id = _numbered(join, launch_base)
    arrows = draw_arrows(batches, join, number, next_id)
    _check_numbers(launch_base, arrows.next_id)
    skewed = _skewed(longs(batches, "start"), join, uncertainty_ns)
    device = _placed(batches, device_offset)
    arrays = (ops, users, number, arrows.flow_id, arrows.flow_type, arrows.flow_start, device, skewed)
    per_batch = zip(*(split(array, join.bounds) for array in arrays), strict=True)
    counts = replace(_counts(join, arrows, ops, skewed, n_unknown, n_inherited), other_ops=other_ops)
    return LinkResult(
        tuple(LinkedColumns(*columns) for columns in per_batch), counts, arrows.next_id, user_parents or {}
    )


def _known(ops: Longs, known_ops: KnownOps | None) -> tuple[Longs, int]:
    """Return the op ids with 0 for those that the host does not know, and how many those are."""
    if known_ops is None:
        return ops, 0
    rows = np.flatnonzero(ops)
    unknown = rows[~per_distinct(ops[rows], known_ops)]
    if len(unknown):
        ops = ops.copy()
        ops[unknown] = 0
    return ops, len(unknown)


def _other_ops(ops: Longs, join: LaunchJoin) -> int:
    """Return how much work names another op than its launch does."""
    work = np.flatnonzero((join.launch >= 0) & (join.classes == WORK))
    own, launched_in = ops[work], ops[join.launch[work]]
    return int(np.count_nonzero((own != 0) & (launched_in != 0) & (own != launched_in)))


def _inherited(ops: Longs, users: Longs, join: LaunchJoin) -> tuple[Longs, Longs, int]:
    """Fill missing ids from a launch to its device records and back; one launch happened in one op and one user range."""
    devices = np.flatnonzero(join.launch >= 0)
    launches = join.launch[devices]
    filled = np.zeros(len(join), dtype=np.bool_)
    ops = _filled(ops, devices, launches, filled)
    users = _filled(users, devices, launches, filled)
    return ops, users, int(np.count_nonzero(filled))


def _filled(ids: Longs, devices: Longs, launches: Longs, filled: Bools) -> Longs:
    to_launch = np.flatnonzero((ids[launches] == 0) & (ids[devices] != 0))[
        ::-1
    ]  # the first device record has the last word
    if len(to_launch):
        ids = ids.copy()
        ids[launches[to_launch]] = ids[devices[to_launch]]
        filled[launches[to_launch]] = True
    to_device = np.flatnonzero((ids[devices] == 0) & (ids[launches] != 0))
    if len(to_device):
        ids = ids.copy()
        ids[devices[to_device]] = ids[launches[to_device]]
        filled[devices[to_device]] = True
    return ids


def _numbered(join: LaunchJoin, launch_base: int) -> tuple[Longs, int]:
    own = join.leader == np.arange(len(join))
    number = np.cumsum(own)
    number += launch_base - 1
    next_id = int(number[-1]) + 1 if len(number) else launch_base
    return number[join.leader], next_id


def _check_numbers(launch_base: int, next_id: int) -> None:
    if launch_base < 1 or next_id - 1 > _GREATEST_NUMBER:
        raise UsageError(
            f"launch numbers {launch_base} to {next_id - 1} do not fit 1 to {_GREATEST_NUMBER}; "
            "record fewer activities in one session, or start from a smaller launch_base"
        )


def _skewed(start: Longs, join: LaunchJoin, uncertainty_ns: int) -> Bools:
    skewed = np.zeros(len(join), dtype=np.bool_)
    work = np.flatnonzero((join.launch >= 0) & (join.classes == WORK))
    skewed[work] = start[work] < start[join.launch[work]] - uncertainty_ns
    return skewed


def _placed(batches: Sequence[ActivityBatch], device_offset: int) -> npt.NDArray[np.int32]:
    device: npt.NDArray[np.int32] = stitch(batches, "device").astype(np.int32, copy=False)
    return device + on_device(batches) * np.int32(device_offset) if device_offset else device


def _counts(
    join: LaunchJoin, arrows: Arrows, ops: Longs, skewed: Bools, n_unknown: int, n_inherited: int
) -> LinkCounts:
    is_work = join.classes == WORK
    n_work = int(np.count_nonzero(is_work))
    n_linked = int(np.count_nonzero(is_work & (ops != 0)))
    n_launches = int(np.count_nonzero(join.has_work))
    return LinkCounts(
        work=n_work,
        linked=n_linked,
        unlinked=n_work - n_linked,
        unknown_ops=n_unknown,
        inherited=n_inherited,
        launches=n_launches,
        calls_without_work=int(np.count_nonzero(join.classes == LAUNCH)) - n_launches,
        work_without_launch=int(np.count_nonzero(is_work & (join.launch < 0))),
        shared_numbers=join.n_shared,
        duplicate_starts=arrows.n_duplicate_starts,
        loose_ends=arrows.n_loose_ends,
        skewed=int(np.count_nonzero(skewed)),
    )
