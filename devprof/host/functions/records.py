"""From calls to a batch: names, what is devprof's own, the items that torch writes beside a Python function."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType

import numpy as np
import numpy.typing as npt

from devprof.host.functions.events import CALL_OF_C, INDEX_SHIFT, MODULE, Captured
from devprof.host.functions.naming import call_names
from devprof.host.functions.pairing import Calls, paired
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind

__all__ = ["HOST_TICKS", "Records", "records"]

HOST_TICKS = "perf_counter_ns"
"""Name of the clock of the records."""

_DEVPROF = str(Path(__file__).resolve().parents[2]) + os.sep
_STANDARD = tuple(str(Path(sysconfig.get_path(kind))) + os.sep for kind in ("stdlib", "platstdlib"))
_USER, _HELPER, _OWN = range(3)
_SITE = os.sep + "site-packages" + os.sep


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """A batch and what it leaves out.

    Attributes:
        batch: the calls, thread by thread, each in the order of entering.
        own: calls of devprof's own functions, and of what only they called, left out.
        mended: threads whose enters and leaves did not pair up.
    """

    batch: ActivityBatch
    own: int
    mended: int


def records(captured: Captured, *, stop_ticks: int) -> Records:
    """Return the records of what a core captured.

    Args:
        captured: events and tables.
        stop_ticks: end of the calls that are still open.
    """
    threads = [thread for thread in captured.threads if not thread.name.startswith("devprof-")]
    calls = paired([thread.events for thread in threads], stop_ticks=stop_ticks)
    shown, own = _without_own(calls, captured)
    names, which = call_names(captured, shown)
    native_ids = np.array([thread.native_id for thread in threads], np.int64)
    batch = ActivityBatch.from_columns(
        names,
        activity_type=ActivityType.PYTHON_FUNCTION,
        name=which,
        start=shown.start,
        end=shown.end,
        thread_id=native_ids[shown.thread],
        metadata=_items(shown, captured),
        clock=HOST_TICKS,
    )
    left_out = sum(len(thread.events) for thread in captured.threads) - sum(len(thread.events) for thread in threads)
    return Records(batch, own + (left_out + 1) // 2, calls.mended)


def _without_own(calls: Calls, captured: Captured) -> tuple[Calls, int]:
    """Leave out devprof's own calls, and those of C functions and of the standard library that one of them made."""
    of_c = (calls.what & CALL_OF_C) != 0
    whose = np.array([*map(_whose, captured.codes), *[_HELPER] * len(captured.c_names)], np.int8)
    whose[[len(captured.codes) + index for index in captured.own_c]] = _OWN
    whose = whose[(calls.what >> INDEX_SHIFT) + np.where(of_c, len(captured.codes), 0)]
    hidden, helpers = whose == _OWN, np.flatnonzero((whose == _HELPER) & (calls.parent >= 0))
    if not hidden.any():
        return calls, 0
    while len(reached := helpers[hidden[calls.parent[helpers]] & ~hidden[helpers]]):
        hidden[reached] = True
    return _take(calls, hidden), int(np.count_nonzero(hidden))


def _whose(code: CodeType) -> int:
    path = code.co_filename
    if path.startswith(_DEVPROF):
        return _OWN
    standard = path.startswith(("<frozen ", *_STANDARD)) and _SITE not in path
    return _HELPER if standard else _USER


def _take(calls: Calls, hidden: npt.NDArray[np.bool_]) -> Calls:
    parent = calls.parent.copy()
    while (inside := np.flatnonzero((parent >= 0) & hidden[parent])).size:
        parent[inside] = parent[parent[inside]]
    kept = np.flatnonzero(~hidden)
    place = np.cumsum(~hidden) - 1
    parent = np.where(parent[kept] >= 0, place[parent[kept]], -1)
    columns = {key: getattr(calls, key)[kept] for key in ("thread", "what", "extra", "start", "end", "finished")}
    return replace(calls, parent=parent, **columns)


def _items(calls: Calls, captured: Captured) -> Mapping[str, MetadataColumn]:
    """Return torch's items; "Python id" counts from 1, "Python module id" within the module's class, as there."""
    n = len(calls.start)
    modules = (calls.what & MODULE) != 0
    numbers = np.array([*(number for _, number in captured.modules), 0], np.int64)
    return {
        "Python id": MetadataColumn(MetadataKind.INT, np.arange(1, n + 1)),
        "Python parent id": MetadataColumn(MetadataKind.INT, calls.parent + 1, calls.parent >= 0),
        "Python module id": MetadataColumn(MetadataKind.INT, numbers[np.where(modules, calls.extra, -1)], modules),
        "finished": MetadataColumn(MetadataKind.BOOL, calls.finished, ~calls.finished),
    }
