"""`memory_batch`: the memory reports of a session as an `ActivityBatch`, in Kineto's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from devprof.host.columns import gathered_rows
from devprof.host.memory import MEMORY_WORDS
from devprof.host.queues import Numbered, Queue
from devprof.host.recording import HOST_TICKS
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind

__all__ = ["memory_batch"]

_EVENT_NAMES = ("[memory]", "[OutOfMemory]")
_MOST_DIGITS = 9
"""Of a device's index: what is longer is no index."""
_PRIVATEUSE1 = 20
# c10/core/DeviceType.h; a backend that is not there is a renamed PrivateUse1
_DEVICE_TYPES = {
    "cpu": 0,
    "cuda": 1,
    "hip": 6,
    "fpga": 7,
    "maia": 8,
    "xla": 9,
    "xpu": 12,
    "mps": 13,
    "meta": 14,
    "hpu": 15,
}
_DEVICE_TYPES |= {"ve": 16, "lazy": 17, "ipu": 18, "mtia": 19}


def memory_batch(queues: Sequence[Queue], first_id: int, stopped_ticks: int) -> ActivityBatch:
    """Return the memory events of a session, thread by thread in the order of reporting.

    Args:
        queues: the session's queues.
        first_id: less than every id of the session.
        stopped_ticks: when recording ended; a report may run beside the stop and read the clock after it.
    """
    rows, owner = gathered_rows([queue.memory for queue in queues], MEMORY_WORDS)
    ticks, range_id, address, delta, allocated, reserved, device, failed = rows.T
    ticks = np.minimum(ticks, stopped_ticks)
    tables = [_devices(queue.devices) for queue in queues]
    first = np.cumsum([0, *map(len, tables)])[:-1]
    devices = [device for table in tables for device in table]
    at = device + first[owner] if len(rows) else device
    texts = {
        text: number for number, text in enumerate(dict.fromkeys([*_EVENT_NAMES, *(text for text, _, _ in devices)]))
    }
    text, types, indices = (
        np.array(column, dtype=np.int64)
        for column in (
            [texts[each[0]] for each in devices],
            [each[1] for each in devices],
            [each[2] for each in devices],
        )
    )
    native_ids = np.array([queue.native_id for queue in queues], dtype=np.int64)
    numbers: dict[str, Any] = {
        "Device Type": types[at],
        "Device Id": indices[at],
        "Addr": address,
        "Bytes": delta,
        "Total Allocated": allocated,
        "Total Reserved": reserved,
    }
    metadata = {key: MetadataColumn(MetadataKind.INT, values) for key, values in numbers.items()}
    metadata["Device"] = MetadataColumn(MetadataKind.STRING, text[at])
    return ActivityBatch.from_columns(
        list(texts),
        activity_type=np.full(len(rows), int(ActivityType.CPU_INSTANT_EVENT), dtype=np.uint8),
        name=failed,
        start=ticks,
        end=ticks,
        thread_id=native_ids[owner] if len(rows) else ticks,
        linked=np.where(range_id > first_id, range_id, 0),
        metadata=metadata,
        clock=HOST_TICKS,
    )


def _devices(devices: Numbered) -> list[tuple[str, int, int]]:
    """Return what each number stands for, in order; a number may be unused."""
    table = [("", _PRIVATEUSE1, -1)] * (max(devices.numbers.values(), default=-1) + 1)
    for (device, backend), number in devices.numbers.items():
        table[number] = _device(device, backend)
    return table


def _device(device: str | int, backend: str) -> tuple[str, int, int]:
    """Return the text, the device type and the index of a reported device; -1 where it names none, as the CPU has none."""
    text = f"{backend}:{device}" if backend else str(device)
    name, _, index = text.partition(":")
    is_index = index.isdecimal() and len(index) <= _MOST_DIGITS
    return text, _DEVICE_TYPES.get(name, _PRIVATEUSE1), int(index) if is_index else -1
