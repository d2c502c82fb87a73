"""How much memory was in use, as counters of a Perfetto trace.

A track per device for what is allocated, and one for what is reserved where that is another number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from devprof.analysis import memory_curve
from devprof.export.perfetto_counters import sample_packets
from devprof.export.perfetto_tracks import counter_packet
from devprof.store import Trace

__all__ = ["memory_packets"]

_FIRST_UUID = 1 << 61
"""Far behind the numbers that other tracks have."""
_AT_ONCE = 1 << 16
_BYTES = 3  # UNIT_SIZE_BYTES of CounterDescriptor


def memory_packets(trace: Trace, base_ns: int) -> Iterator[bytes]:
    """Yield the tracks and samples of the memory that the trace has reports of; nothing where it has none.

    Args:
        trace: the trace.
        base_ns: what the file's clock counts from.
    """
    uuid = _FIRST_UUID
    for device, curve in memory_curve(trace).items():
        values = {"allocated": curve.allocated_bytes}
        if (curve.reserved_bytes != curve.allocated_bytes).any():
            values["reserved"] = curve.reserved_bytes
        for what, bytes_now in values.items():
            yield counter_packet(uuid, 0, f"{device} memory {what}", unit=_BYTES)
            yield from _samples(uuid, curve.times_ns - base_ns, bytes_now)
            uuid += 1


def _samples(uuid: int, time_ns: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> Iterator[bytes]:
    for low in range(0, len(values), _AT_ONCE):
        at = slice(low, low + _AT_ONCE)
        track = np.full(len(values[at]), uuid, dtype=np.int64)
        yield sample_packets(time_ns[at], track, values[at].astype(np.float64))
