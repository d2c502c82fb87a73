"""`RING_DTYPE`: one non-blocking device call, as the native side queues it and the runtime replays it.

The native device (`csrc/`) writes these records on the thread that makes the call; `Runtime.replay` reads them in order.
Both sides agree on this layout; a test compares their sizes.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["RING_DTYPE", "CallKind", "CopyKind"]


class CallKind(IntEnum):
    """Which call a ring record stands for."""

    LAUNCH = 1
    MEMCPY = 2
    MEMSET = 3
    EVENT_RECORD = 4
    STREAM_WAIT_EVENT = 5
    EVENT_DESTROY = 6


class CopyKind(IntEnum):
    """Direction of a copy."""

    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    DEVICE_TO_DEVICE = 3
    PEER_TO_PEER = 4


RING_DTYPE = np.dtype(
    [
        ("host_start_ns", "<i8"),  # call entered, Unix ns
        ("host_end_ns", "<i8"),  # call returned, Unix ns
        ("op_id", "<u8"),  # top of the thread's op stack at the call, 0: none
        ("user_id", "<u8"),  # top of the thread's user stack at the call, 0: none
        ("thread_id", "<i8"),  # native id of the calling thread
        ("bytes", "<i8"),  # copies and sets
        ("event", "<u8"),  # event calls
        ("name", "<u4"),  # launches: interned name of the op
        ("signature", "<u4"),  # launches: interned shapes and dtypes, for the cost model
        ("stream", "<i4"),
        ("device", "<i2"),  # device of the stream
        ("peer", "<i2"),  # peer copies: the source device, else -1
        ("kind", "u1"),  # CallKind
        ("copy_kind", "u1"),  # CopyKind, for copies
        ("pad", "u1", (6,)),
    ]
)
"""80 bytes a record."""
