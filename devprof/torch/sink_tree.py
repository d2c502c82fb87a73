"""The tree of a torch trace: which event stands above which."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.link import nest
from devprof.model import ActivityType, Role

__all__ = ["parents"]

Longs = npt.NDArray[np.int64]

_LAUNCH = np.zeros(256, dtype=np.bool_)
_LAUNCH[[int(kind) for kind in ActivityType if kind.role is Role.LAUNCH]] = True
_ASYNC_CPU_GPU = 2  # kLinkAsyncCpuGpu


def parents(columns: dict[str, npt.NDArray[np.generic]], on_device: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return the event above each, -1: none.

    Of a host event the innermost one around it on its thread, of a launch its op, of device work its launch, else its op.

    Args:
        columns: (n,) columns of `devprof.torch.sink_columns.Columns`.
        on_device: (n,) bool, which events stand on a device's row.
    """
    parent = np.full(len(on_device), -1, dtype=np.int64)
    host = np.flatnonzero(~on_device)
    start, end, row = (columns[key][host].astype(np.int64) for key in ("start", "end", "row"))
    above = nest(start, end, row, entered_in_order=False)
    parent[host] = np.where(above >= 0, host[above], -1)
    linked = columns["linked_event"].astype(np.int64)
    follows = (linked >= 0) & (on_device | _LAUNCH[columns["type"]])
    parent[follows] = linked[follows]
    work = np.flatnonzero(on_device)
    launch = _launch_of(columns, work)
    parent[work[launch >= 0]] = launch[launch >= 0]
    return parent.astype(np.int32)


def _launch_of(columns: dict[str, npt.NDArray[np.generic]], work: Longs) -> Longs:
    """Return the launch of each piece of device work, -1: none: where its arrow begins, else the call with its number."""
    is_launch = _LAUNCH[columns["type"]]
    flow, number = columns["flow_id"].astype(np.int64), columns["id"].astype(np.int64)
    arrow = np.where(columns["flow_type"] == _ASYNC_CPU_GPU, flow, 0)
    by_arrow = _first(arrow, np.flatnonzero(is_launch & (columns["flow_start"] != 0)), arrow[work])
    return np.where(by_arrow >= 0, by_arrow, _first(number, np.flatnonzero(is_launch), number[work]))


def _first(key: Longs, among: Longs, wanted: Longs) -> Longs:
    """Return the first event of `among` that has the key, for each wanted one, -1: none; 0 is no key."""
    if not len(among):
        return np.full(len(wanted), -1, dtype=np.int64)
    among = among[np.argsort(key[among], kind="stable")]
    at = np.minimum(np.searchsorted(key[among], wanted), len(among) - 1)
    return np.where((wanted != 0) & (key[among][at] == wanted), among[at], -1)
