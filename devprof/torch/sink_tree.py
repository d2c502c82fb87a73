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
    """Return the launch whose arrow ends at each piece of device work, -1: none."""
    flow = columns["flow_id"].astype(np.int64)
    arrow = (columns["flow_type"] == _ASYNC_CPU_GPU) & (flow != 0)
    launches = np.flatnonzero(arrow & (columns["flow_start"] != 0) & _LAUNCH[columns["type"]])
    if not len(launches) or not len(work):
        return np.full(len(work), -1, dtype=np.int64)
    order = np.argsort(flow[launches], kind="stable")
    numbers = flow[launches][order]
    at = np.minimum(np.searchsorted(numbers, flow[work]), len(numbers) - 1)
    return np.where(arrow[work] & (numbers[at] == flow[work]), launches[order][at], -1)
