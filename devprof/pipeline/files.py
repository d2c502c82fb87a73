"""From a file to a whole trace: read -> nest -> link by the numbers that the file gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.errors import TraceFileError
from devprof.link import nest
from devprof.model import ActivityType, Role, kLinkAsyncCpuGpu
from devprof.pipeline.json_decoder import json_decoder
from devprof.store import Trace
from devprof.store import load as load_saved
from devprof.store.readers import MAX_BYTES, Progress, is_nsys, read_kineto, read_nsys, read_nvprof

__all__ = ["joined", "load", "load_kineto", "load_nsys", "load_nvprof"]

_Longs = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_REPEATED = (
    "calls and device work have their launch number for an op id, as older Kineto wrote it; "
    "they belong to the op around the call"
)
"""Note in the facts of such a file."""

_STARTS_WORK = ("aunch", "emcpy", "emset")
"""What the names of calls have in common that start device work, of whatever vendor."""


def load_nvprof(path: str | os.PathLike[str]) -> Trace:
    """Load an nvprof export (SQLite), with its tree: ranges, calls under them, device work under its call.

    Args:
        path: the file; it is not written to.

    Raises:
        TraceFileError: it is no such file, or is damaged, or holds a key twice that must be unique.
    """
    return joined(read_nvprof(Path(path)), with_arrows=True)


def load_nsys(path: str | os.PathLike[str]) -> Trace:
    """Load an Nsight Systems export (SQLite, `nsys export --type sqlite`), with its tree.

    Args:
        path: the file; it is not written to.

    Raises:
        TraceFileError: it is no such file, or is damaged.
    """
    return joined(read_nsys(Path(path)), with_arrows=True)


def load_kineto(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, progress: Progress | None = None) -> Trace:
    """Load a trace in Chrome's JSON (``.json``, ``.json.gz``), of Kineto or of anybody else, with its tree.

    Args:
        path: the file; packed or not is found by its content.
        max_bytes: most bytes of text, unpacked.
        progress: called now and then with how many of the file's bytes have been read, and how many there are.

    Raises:
        TraceFileError: it is no such file, holds no events, or is too large.
    """
    file = Path(path)
    return joined(read_kineto(file, max_bytes=max_bytes, decoder=json_decoder(file), progress=progress))


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, progress: Progress | None = None) -> Trace:
    """Load a trace of any format that devprof reads, found by its content, not by its name.

    Args:
        path: a ``.devprof`` file, Chrome JSON (packed or not), or an SQLite export of nvprof or of Nsight Systems.
        max_bytes: most bytes of JSON text, unpacked.
        progress: called now and then while JSON is read, as in `load_kineto`; other formats take no long time.

    Raises:
        TraceFileError: it is none of these, or is damaged, or a pipe.
    """
    file = Path(path)
    try:
        if not (file.is_file() or file.is_dir()) and file.exists():  # to open a pipe is to wait for who writes to it
            raise TraceFileError(
                f"{file} is a pipe or a device; a trace is read in several passes: save it to a file first"
            )
        with file.open("rb") as opened:
            head = opened.read(16)
    except OSError as error:
        raise TraceFileError(f"{file} cannot be opened: {error.strerror or error}") from error
    if head.startswith(b"PK\x03\x04"):
        return load_saved(file)
    if head.startswith(b"SQLite format 3\0"):
        return load_nsys(file) if is_nsys(file) else load_nvprof(file)
    return load_kineto(file, max_bytes=max_bytes, progress=progress)


def joined(trace: Trace, *, with_arrows: bool = False) -> Trace:
    """Return a trace from a file with parents, and with what follows from them.

    Host events get the innermost event around them as parent. Device work gets its launch, else the op that its id names.
    Where the file gives no op ids, a launch takes the id of the nearest range around it, and device work that of its launch; so
    it is where older Kineto wrote the launch number in their place, which a note in the facts says. Where the file carries the
    account of a devprof session, that session has linked whatever can be linked, and nothing is guessed.

    Args:
        trace: as a reader returns it: the events of a row in the order of entering.
        with_arrows: add arrows from launches to their device work; for formats that know none.
    """
    role = _Roles(trace)
    parent = np.full(len(trace), -1, dtype=np.int64)
    host = np.flatnonzero(role.host)
    above = nest(trace.start_ns[host], trace.end_ns[host], trace.row[host].astype(np.int64))
    parent[host] = np.where(above >= 0, host[above], -1)
    around = _ranges_around(role, parent)
    is_linked = _has_account(trace.facts)
    repeated = not is_linked and _repeat_launch_numbers(trace, role, around)
    linked = np.where(role.launches | role.device, 0, trace.linked) if repeated else trace.linked
    guessed = role.ranges if is_linked else role.ranges | role.launches
    linked = np.where((linked == 0) & (around >= 0) & guessed, trace.id[around], linked)
    launch = _launches(trace, role)
    if not is_linked:
        linked = np.where((linked == 0) & (launch >= 0), linked[launch], linked)
    parent = np.where(role.device, _work_parents(trace, role, launch, linked), parent)
    columns: dict[str, Any] = {"parent": parent.astype(np.int32), "linked": linked}
    if with_arrows:
        columns |= _arrows(trace, launch)
    return replace(trace, **columns, facts=_noted(trace.facts, _REPEATED) if repeated else trace.facts)


def _noted(facts: Mapping[str, object], note: str) -> dict[str, object]:
    file = facts.get("file")
    account: dict[str, Any] = dict(file) if isinstance(file, Mapping) else {}
    return {**facts, "file": {**account, "notes": [*account.get("notes", ()), note]}}


def _has_account(facts: Mapping[str, object]) -> bool:
    """Say whether a trace is of a session of devprof's with plugins, or of several, merged."""
    report, ranks = facts.get("report"), facts.get("ranks")
    if isinstance(ranks, list) and ranks:
        inner = [one.get("facts") if isinstance(one, Mapping) else None for one in ranks]
        return all(isinstance(one, Mapping) and "ranks" not in one and _has_account(one) for one in inner)
    return isinstance(report, Mapping) and bool(report.get("plugins"))


class _Roles:
    """Which events are what: masks (n,)."""

    def __init__(self, trace: Trace) -> None:
        kinds = trace.activity_type
        on_device = trace.on_device
        self.host: _Mask = ~on_device
        self.ranges: _Mask = self.host & np.isin(kinds, (ActivityType.CPU_OP, ActivityType.USER_ANNOTATION))
        self.launches: _Mask = self.host & np.isin(kinds, _of(Role.LAUNCH))
        self.device: _Mask = on_device & np.isin(kinds, _of(Role.KERNEL, Role.COPY, Role.SET, Role.SYNC))


def _of(*roles: Role) -> list[int]:
    return [int(kind) for kind in ActivityType if kind.role in roles]


def _ranges_around(role: _Roles, parent: _Longs) -> _Longs:
    """Return the innermost op or user range around each event: (n,) index, -1: none."""
    up = parent
    while True:
        passing = np.flatnonzero((up >= 0) & ~role.ranges[up])
        if not len(passing):
            return up
        up = up.copy()
        up[passing] = parent[up[passing]]


def _repeat_launch_numbers(trace: Trace, role: _Roles, around: _Longs) -> bool:
    """Say whether the op ids of calls and device work are their own launch numbers, and not those of the ops around calls."""
    linked = np.flatnonzero((role.launches | role.device) & (trace.linked != 0))
    if not len(linked) or (trace.linked[linked] != trace.id[linked]).any():
        return False
    calls = linked[role.launches[linked] & (around[linked] >= 0)]
    return 2 * int(np.count_nonzero(trace.linked[calls] == trace.id[around[calls]])) < len(calls)


def _launches(trace: Trace, role: _Roles) -> _Longs:
    """Return the launch of each event of device work, by launch number: (n,) index, -1: none."""
    calls = np.flatnonzero(role.launches & (trace.id != 0))
    starts_work = np.array([any(part in text for part in _STARTS_WORK) for text in trace.strings], dtype=np.bool_)
    # of several calls with one number the first that starts work, else the first
    order = np.lexsort((calls, ~starts_work[trace.name[calls]], trace.id[calls]))
    found = _first_with(trace.id, calls[order], trace.id)
    return np.where(role.device & (trace.id != 0), found, -1)


def _work_parents(trace: Trace, role: _Roles, launch: _Longs, linked: _Longs) -> _Longs:
    ops = np.flatnonzero(role.ranges & (trace.id != 0))
    ops = ops[np.argsort(trace.id[ops], kind="stable")]
    op = np.where(linked != 0, _first_with(trace.id, ops, linked), -1)
    return np.where(launch >= 0, launch, op)


def _first_with(keys: _Longs, candidates: _Longs, wanted: _Longs) -> _Longs:
    """Return the first candidate whose key is each wanted value, -1: none; the candidates are ordered by key."""
    if not len(candidates):
        return np.full(len(wanted), -1, dtype=np.int64)
    ordered = keys[candidates]
    at = np.minimum(np.searchsorted(ordered, wanted), len(candidates) - 1)
    return np.where(ordered[at] == wanted, candidates[at], -1)


def _arrows(trace: Trace, launch: _Longs) -> dict[str, npt.NDArray[Any]]:
    arrives = launch >= 0
    flow_id, start = np.zeros(len(trace), dtype=np.int64), np.zeros(len(trace), dtype=np.uint8)
    flow_id[arrives] = trace.id[arrives]
    flow_id[launch[arrives]] = trace.id[launch[arrives]]
    start[launch[arrives]] = 1
    kind = np.where(flow_id != 0, kLinkAsyncCpuGpu, 0).astype(np.uint8)
    return {"flow_id": flow_id, "flow_type": kind, "flow_start": start}
