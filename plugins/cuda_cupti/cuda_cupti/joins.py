"""What records of one kind say of records of another: by correlation id, by context, by event.

CUPTI's buffers are in no order across threads, so everything is looked up in all records of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuda_cupti.decode import Records
from cuda_cupti.layouts import ActivityKind, Rows

__all__ = ["ExternalKinds", "Joins", "Lookup", "joins_of"]

Longs = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]

_K = ActivityKind
_WITH_DEVICE = (
    _K.CONCURRENT_KERNEL,
    _K.KERNEL,
    _K.MEMCPY,
    _K.MEMCPY2,
    _K.MEMSET,
    _K.GRAPH_TRACE,
    _K.CUDA_EVENT,
    _K.CONTEXT,
)
_CAUSED = (*_WITH_DEVICE[:6], _K.SYNCHRONIZATION, _K.MEMORY2)


@dataclass(frozen=True, slots=True)
class ExternalKinds:
    """Which of CUPTI's kinds of external correlation id carry what (``CUpti_ExternalCorrelationKind``).

    Attributes:
        op: kind of devprof's op ids; CUSTOM2, because Kineto has CUSTOM0 and CUSTOM1.
        user: kind of the ids of user ranges; UNKNOWN, the only other one that nobody has.
        ids_of: makes devprof's ids of what was pushed, (n,) uint64 to (n,) uint64, 0 for none; None: they are what was pushed.
    """

    op: int = 5
    user: int = 1
    ids_of: Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.uint64]] | None = None


class Lookup:
    """Values by number. Where a number occurs twice, its first value counts."""

    def __init__(self, keys: Numbers, values: Numbers) -> None:
        """Take (n,) keys and (n,) values."""
        self._keys, first = np.unique(keys.astype(np.int64), return_index=True)
        self._values = values.astype(np.int64)[first]

    def of(self, keys: Numbers, default: int = 0) -> Longs:
        """Return the value of each number, (n,), `default` for one that there is not."""
        found = self.has(keys)
        values = np.full(len(keys), default, dtype=np.int64)
        at = np.searchsorted(self._keys, keys.astype(np.int64)[found])
        values[found] = self._values[at]
        return values

    def has(self, keys: Numbers) -> npt.NDArray[np.bool_]:
        """Say which numbers there are, (n,)."""
        if not len(self._keys):
            return np.zeros(len(keys), dtype=np.bool_)
        keys = keys.astype(np.int64)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found: npt.NDArray[np.bool_] = self._keys[at] == keys
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Joins:
    """Lookups over a session's records.

    Attributes:
        op: op id by correlation id.
        user: user id by correlation id.
        thread: native id of the calling thread by correlation id.
        device: device by context.
        runtime: correlation ids of calls of the runtime.
        caused: correlation ids of what happened on a device, or for it: work, waits, allocations.
    """

    op: Lookup
    user: Lookup
    thread: Lookup
    device: Lookup
    runtime: Lookup
    caused: Lookup

    def device_of(self, contexts: Numbers) -> Longs:
        """Return the device of each context, (n,); the only one that there is, else 0, for a context that nothing tells."""
        known = set(self.device._values.tolist())
        return self.device.of(contexts, known.pop() if len(known) == 1 else 0)


def joins_of(records: Records, external: ExternalKinds) -> Joins:
    """Look at all records of a session once."""
    calls = [records.of[kind] for kind in (_K.RUNTIME, _K.DRIVER) if kind in records.of]
    placed = [records.of[kind] for kind in _WITH_DEVICE if kind in records.of]
    caused = [records.of[kind] for kind in _CAUSED if kind in records.of]
    pushed = records.of.get(_K.EXTERNAL_CORRELATION)
    runtime = _column([records.of[_K.RUNTIME]] if _K.RUNTIME in records.of else [], "correlationId")
    causes = _column(caused, "correlationId")
    return Joins(
        op=_external(pushed, external.op, external),
        user=_external(pushed, external.user, external),
        thread=_numbered(_column(calls, "correlationId"), _column(calls, "threadId")),
        device=Lookup(_column(placed, "contextId"), _column(placed, "deviceId")),
        runtime=_numbered(runtime, runtime),
        caused=_numbered(causes, causes),
    )


def _external(pushed: Rows | None, kind: int, external: ExternalKinds) -> Lookup:
    if pushed is None:
        return Lookup(np.empty(0, np.int64), np.empty(0, np.int64))
    rows = pushed[pushed["externalKind"] == kind]
    ids = rows["externalId"] if external.ids_of is None else external.ids_of(rows["externalId"])
    kept = (ids > 0) & (ids < np.uint64(1 << 63))  # what no column of devprof's could hold was not pushed by devprof
    return _numbered(rows["correlationId"][kept], ids[kept])


def _numbered(keys: Numbers, values: Numbers) -> Lookup:
    """Return the lookup without correlation id 0, which says that there is none."""
    kept = keys != 0
    return Lookup(keys[kept], values[kept])


def _column(parts: list[Rows], name: str) -> Longs:
    arrays = [part[name].astype(np.int64) for part in parts]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
