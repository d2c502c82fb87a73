"""Names of CUDA's API calls, by the number that CUPTI gives them, without a driver; and which calls a trace leaves out.

The table is of CUDA 13.5; a number whose function is gone by then has the name of the last release that had it. Numbers are
never given away again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cuda_cupti.layouts import ActivityKind

__all__ = ["DRIVER_CALLS", "RUNTIME_NOISE", "api_name", "api_names", "driver_calls_shown"]

RUNTIME_NOISE = frozenset({10, 16, 17, 133, 134, 136})
"""Calls of the runtime that Kineto leaves out: cudaGetLastError, cudaSetDevice, cudaGetDevice, cudaEventCreate,
cudaEventCreateWithFlags, cudaEventDestroy."""

DRIVER_CALLS = frozenset({307, 549, 550, 551, 552, 554, 555, 652})
"""Calls of the driver that Kineto shows: cuLaunchKernel, cuMemCreate, cuMemRelease, cuMemMap, cuMemUnmap, export and import of
shareable handles, cuLaunchKernelEx."""

_LAUNCHES = re.compile(r"cu(Launch|Memcpy|Memset|MemPrefetch|GraphLaunch|StreamWaitEvent)|cu\w+Synchronize")
_DOMAINS = {"runtime": ActivityKind.RUNTIME, "driver": ActivityKind.DRIVER}
_RELEASE = re.compile(r"_v\d{4,}$")


def api_name(kind: int, cbid: int) -> str:
    """Return a call's name without the release that it came with: ``cudaLaunchKernel``; ``cbid_N`` for an unknown number.

    Args:
        kind: `ActivityKind.RUNTIME` or `ActivityKind.DRIVER`.
        cbid: CUPTI's number of the call.
    """
    return _table().get(kind, {}).get(cbid, f"cbid_{cbid}")


def api_names(kind: int, cbids: npt.NDArray[np.uint32]) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the distinct names of calls, and which of them each call has, (n,)."""
    distinct, inverse = np.unique(cbids, return_inverse=True)
    return [api_name(kind, cbid) for cbid in distinct.tolist()], inverse.astype(np.int32)


@cache
def driver_calls_shown() -> npt.NDArray[np.uint32]:
    """Return the numbers of the driver's calls that are shown: Kineto's, and those that put work on a device or wait for one.

    Kineto is made for torch, whose copies and waits go through the runtime. In a program without it they are the driver's own,
    and would be work without a launch.
    """
    names = _table()[ActivityKind.DRIVER]
    return np.array(
        sorted(DRIVER_CALLS | {cbid for cbid, name in names.items() if _LAUNCHES.match(name)}), dtype=np.uint32
    )


@cache
def _table() -> Mapping[int, Mapping[int, str]]:
    names: dict[int, dict[int, str]] = {kind: {} for kind in _DOMAINS.values()}
    for line in Path(__file__).with_name("cbids.txt").read_text(encoding="ascii").splitlines():
        domain, cbid, name = line.split()
        names[_DOMAINS[domain]][int(cbid)] = _RELEASE.sub("", name)
    return names
