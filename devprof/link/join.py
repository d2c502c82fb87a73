"""Join launches on the host with their work on devices, by launch number.

Launch numbers are the vendor's correlation ids: equal on a host call and on what it caused. They are another space than op
ids and are never compared with them. 0 means none and joins nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.link.columns import LAUNCH, SYNC, WORK, Bools, Longs, bounds_of, classes_of, codes_of, longs
from devprof.model import ActivityBatch

__all__ = ["LaunchJoin", "join_launches"]


@dataclass(frozen=True, slots=True, eq=False)
class LaunchJoin:
    """Who launched what, over all batches of one plugin in one session.

    Attributes:
        bounds: first row of each batch, and behind them the number of rows.
        classes: (n,) uint8, what each record is to linking.
        launch: (n,) int64, row of the launch of each device record (work or wait), -1: none.
        leader: (n,) int64, the row that stands for each record's launch: the launch itself, else the first device record of
            the same number, else the record's own row.
        has_work: (n,) bool, True on a launch with work on a device.
        n_shared: host records that carry the number of a launch with device records and are not that launch.
    """

    bounds: tuple[int, ...]
    classes: npt.NDArray[np.uint8]
    launch: Longs
    leader: Longs
    has_work: Bools
    n_shared: int

    def __len__(self) -> int:
        return len(self.launch)

    @property
    def on_device(self) -> Bools:
        """Which records are work that occupies a device: (n,) bool."""
        work: Bools = self.classes == WORK
        return work

    def take(self, keep: Bools) -> LaunchJoin:
        """Return the join of the rows to keep; a device record must be kept only with its launch, as `apply_window` does.

        Args:
            keep: (n,) bool.
        """
        row_after = np.cumsum(keep) - 1
        launch, classes = self.launch[keep], self.classes[keep]
        launch = np.where(launch >= 0, row_after[launch], -1)
        leader = self._leaders_among(keep)[keep]
        kept = np.cumsum([0, *(np.count_nonzero(keep[a:b]) for a, b in itertools.pairwise(self.bounds))])
        return LaunchJoin(
            tuple(kept.tolist()), classes, launch, row_after[leader], _with_work(launch, classes), self.n_shared
        )

    def _leaders_among(self, keep: Bools) -> Longs:
        """Return each row's leader; where the leader goes, the first row that stays takes its place."""
        stays = keep[self.leader]
        if stays[keep].all():
            return self.leader
        orphans = np.flatnonzero(keep & ~stays)
        heir = np.empty(len(self), dtype=np.int64)
        heir[self.leader[orphans[::-1]]] = orphans[::-1]
        leader = self.leader.copy()
        leader[orphans] = heir[leader[orphans]]
        return leader


def join_launches(batches: Sequence[ActivityBatch]) -> LaunchJoin:
    """Join host calls with device records of the same number.

    One launch may have many device records (a graph). Where several host records share a number, one of them is the launch,
    since an arrow starts in one place: see `_choose`.

    Args:
        batches: all batches of one plugin in one session, with times on one clock.
    """
    classes = classes_of(batches)
    ids = longs(batches, "id")
    numbered = ids != 0
    hosts = np.flatnonzero((classes == LAUNCH) & numbered)
    devices = np.flatnonzero((classes >= WORK) & numbered)
    host_codes, device_codes = codes_of(ids[hosts], ids[devices])
    launch = np.full(len(ids), -1, dtype=np.int64)
    n_shared = 0
    if len(hosts) and len(devices):
        launch_of_code = _first(host_codes, hosts)
        if (launch_of_code[host_codes] != hosts).any():
            caused = _earliest(batches, devices, device_codes, len(launch_of_code))
            n_shared = int(np.count_nonzero(caused[host_codes] >= 0) - np.count_nonzero(caused >= 0))
            launch_of_code = _choose(batches, hosts, host_codes, caused)
        found = launch_of_code[device_codes]
        found[device_codes < 0] = -1
        launch[devices] = found
    leader = _leaders(ids, launch, devices)
    return LaunchJoin(bounds_of(batches), classes, launch, leader, _with_work(launch, classes), n_shared)


def _first(codes: Longs, rows: Longs) -> Longs:
    """Return the first row of each code, -1 where a code has none."""
    table = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
    table[codes[::-1]] = rows[::-1]
    return table


def _earliest(batches: Sequence[ActivityBatch], devices: Longs, codes: Longs, n_codes: int) -> Longs:
    """Return the device record of each code that started first, -1 where a code has none."""
    known = codes >= 0
    devices, codes = devices[known], codes[known]
    order = np.lexsort((longs(batches, "start")[devices], codes))
    table = np.full(n_codes, -1, dtype=np.int64)
    table[codes[order[::-1]]] = devices[order[::-1]]
    return table


def _choose(batches: Sequence[ActivityBatch], hosts: Longs, codes: Longs, caused: Longs) -> Longs:
    """Choose the launch among host records that share a number.

    A query or an event call can carry the number of a launch. In this order: it started no later than the first device
    record of that number; it has that record's op id; it has that record's thread; it is the earliest.
    """
    start, linked, thread = (longs(batches, column) for column in ("start", "linked", "thread_id"))
    first = caused[codes]
    late = start[hosts] > start[first]
    other_op = (linked[hosts] == 0) | (linked[hosts] != linked[first])
    other_thread = (thread[hosts] == 0) | (thread[hosts] != thread[first])
    # where there is no device record the criteria compare with a wrong row; no arrow starts there, so nothing depends on it
    order = np.lexsort((hosts, start[hosts], other_thread, other_op, late, codes))
    table = np.full(len(caused), -1, dtype=np.int64)
    table[codes[order[::-1]]] = hosts[order[::-1]]
    return table


def _leaders(ids: Longs, launch: Longs, devices: Longs) -> Longs:
    leader = np.where(launch >= 0, launch, np.arange(len(ids)))
    orphans = devices[launch[devices] < 0]
    if len(orphans):
        (codes,) = codes_of(ids[orphans])
        leader[orphans] = _first(codes, orphans)[codes]
    return leader


def _with_work(launch: Longs, classes: npt.NDArray[np.uint8]) -> Bools:
    has_work = np.zeros(len(launch), dtype=np.bool_)
    has_work[launch[(launch >= 0) & (classes != SYNC)]] = True
    return has_work
