"""Delivery of activity records into buffers that the client provides."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from openreg_sim.runtime.encoding import KINDS_OF_CALL, Encoder
from openreg_sim.runtime.faults import FaultPlan
from openreg_sim.runtime.records import RECORD_BYTES, Call, rows_of

__all__ = ["ActivityDelivery", "BufferCompleted", "BufferRequested"]

logger = logging.getLogger("openreg_sim")

BufferRequested = Callable[[], Any]
"""Returns a writable buffer of bytes (bytearray, memoryview, numpy array), or None to refuse."""
BufferCompleted = Callable[[Any, int], None]
"""Takes a buffer back, with the number of bytes that hold records."""


class ActivityDelivery:
    """Keeps rows until their records are complete, and then writes those into the client's buffers.

    `add` runs under the runtime's lock. Callbacks run under the delivery's own lock, never under the runtime's, on the thread
    that flushes or that makes the call which fills up the rows.

    Args:
        lock: the runtime's lock.
        encoder: makes records of rows.
        faults: rules that may spoil a delivery.
        delivery_rows: deliver by itself once this many rows have been added.
    """

    def __init__(self, lock: Any, encoder: Encoder, faults: FaultPlan, delivery_rows: int) -> None:
        self._lock = lock
        self._encoder = encoder
        self._faults = faults
        self._delivery_rows = delivery_rows
        self.lock = threading.RLock()
        self._added: list[bytes] = []
        self._left = rows_of(b"")
        self._requested: BufferRequested | None = None
        self._completed: BufferCompleted | None = None
        self._buffer: Any = None
        self._view: memoryview = memoryview(b"")
        self._filled = 0
        self._dropped = 0
        self.enabled = 0
        self.kinds_of_call: dict[Call, int] = dict.fromkeys(Call, 0)

    def enable(self, kinds: int) -> None:
        """Record these kinds too, a set of `ActivityKind` bits, for calls from now on."""
        self._set_enabled(self.enabled | kinds)

    def disable(self, kinds: int) -> None:
        """Stop recording these kinds; work that was launched before still leaves its records."""
        self._set_enabled(self.enabled & ~kinds)

    def _set_enabled(self, enabled: int) -> None:
        with self._lock:
            self.enabled = enabled
            self.kinds_of_call = {call: kinds & enabled for call, kinds in KINDS_OF_CALL.items()}

    def register(self, requested: BufferRequested | None, completed: BufferCompleted | None) -> None:
        """Replace the client's callbacks, after handing back the buffer that is being filled."""
        with self.lock:
            self._hand_back()
            self._requested, self._completed = requested, completed

    def add(self, row: bytes) -> None:
        """Keep a call's row. The caller holds the runtime's lock."""
        self._added.append(row)

    @property
    def is_due(self) -> bool:
        """True once so many rows have been added that they should be delivered."""
        return len(self._added) >= self._delivery_rows

    def deliver(self, now_ns: int) -> None:
        """Write the records that are complete; buffers that get full go back to the client."""
        with self.lock:
            with self._lock:
                added, self._added = self._added, []
            if not added and not len(self._left):
                return
            rows = np.concatenate([self._left, rows_of(b"".join(added))])
            records, self._left = self._encoder.encode(rows, now_ns)
            records, dropped = self._faults.alter(records)
            self._dropped += dropped
            self._write(np.ascontiguousarray(records))

    def flush(self, now_ns: int, *, force: bool) -> None:
        """Deliver, and hand over the buffer that is being filled; with `force` even where a rule would keep it back."""
        with self.lock:
            if self._faults.holds_flush(forced=force):
                return
            self.deliver(now_ns)
            self._hand_back()

    def take_dropped(self) -> int:
        """Return how many records were dropped since this was last asked."""
        with self.lock:
            dropped, self._dropped = self._dropped, 0
            return dropped

    def _write(self, records: npt.NDArray[np.void]) -> None:
        data = records.view(np.uint8).data
        written = 0
        while written < len(data):
            room = self._room()
            if not room:
                self._dropped += (len(data) - written) // RECORD_BYTES
                return
            size = min(room, len(data) - written)
            self._view[self._filled : self._filled + size] = data[written : written + size]
            self._filled += size
            written += size
            if self._filled == len(self._view):
                self._hand_back()

    def _room(self) -> int:
        """Return the bytes left in the current buffer, asking the client for one if there is none; 0 if it has none."""
        if self._buffer is None and self._requested is not None:
            buffer = self._call(self._requested)
            if buffer is None:
                return 0
            view = memoryview(buffer).cast("B")
            size = self._faults.usable_bytes(len(view)) // RECORD_BYTES * RECORD_BYTES
            self._buffer, self._view, self._filled = buffer, view[:size], 0
            if not size:
                self._hand_back()
        return len(self._view) - self._filled

    def _hand_back(self) -> None:
        buffer, filled = self._buffer, self._filled
        self._buffer, self._view, self._filled = None, memoryview(b""), 0
        if buffer is not None and self._completed is not None:
            self._call(self._completed, buffer, filled)

    def _call(self, callback: Callable[..., Any], *args: Any) -> Any:
        # the client's mistake must not reach the program whose call happened to trigger the delivery
        try:
            return callback(*args)
        except Exception:
            logger.exception("openreg activity callback %r failed", callback)
            return None
