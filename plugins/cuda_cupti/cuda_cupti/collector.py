"""Collecting a session's records: buffers go out to CUPTI and come back, and are decoded on a thread of our own."""

from __future__ import annotations

import _thread
import ctypes
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable

from cuda_cupti.decode import Records, TextAt, decode
from cuda_cupti.exchange import INTERRUPTED, Exchange, FilledBuffer
from cuda_cupti.layouts import ActivityKind, Layout

__all__ = ["MOST_BYTES", "Collector", "c_string"]

MOST_BYTES = 4 << 30
"""A session keeps at most this much of records; beyond, they are counted and let go."""

_COMMAND_BUFFER_FULL = 6 << 16
"""The one kind of overhead that comes with memory for us to free, as the header says (``CUpti_ActivityOverheadKind``)."""
_END = 0
"""The signal to the thread that decodes that there is nothing more."""


def c_string(address: int) -> bytes:
    """Read the C string at an address, which CUPTI says is there."""
    return ctypes.string_at(address)


class Collector:
    """One session's records.

    Attributes:
        records: what was decoded and not taken yet, a buffer each; complete when `finish` has returned.
        errors: what went wrong, a sentence each.
        unkept: records beyond `MOST_BYTES`.
    """

    def __init__(
        self,
        exchange: Exchange,
        layout: Layout,
        text_at: TextAt = c_string,
        free: Callable[[int], object] | None = None,
    ) -> None:
        """Make a collector that has not begun.

        Args:
            exchange: CUPTI's side.
            layout: how long records are.
            text_at: reads a kernel's name.
            free: frees memory that CUPTI hands over with a record; None: there is none.
        """
        self.records: deque[Records] = deque()
        self.errors: list[str] = []
        self.unkept = 0
        self._exchange, self._layout, self._text_at, self._free = exchange, layout, text_at, free
        self._caught_up: dict[int, threading.Event] = {}
        self._signals = itertools.count(_END + 1)
        self._bytes = self._taken_bytes = 0  # one is the worker's to write, the other the taker's
        self._worker: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread that decodes, and take completed buffers from now on.

        Raises:
            OSError: there is no memory for buffers.
            RuntimeError: there is no thread to be had.
        """
        self._exchange.begin()
        worker = threading.Thread(target=self._work, name="devprof-cuda-decode", daemon=True)
        try:
            worker.start()
        except RuntimeError:
            self._exchange.end()
            raise
        self._worker = worker

    def wait(self, loans: int, timeout_s: float, sleep: Callable[[float], object] = time.sleep) -> int:
        """Wait until CUPTI holds none of the buffers that it was lent first; return how many it still has after `timeout_s`.

        Args:
            loans: how many had been lent when CUPTI was asked for them; later ones are of work that goes on.
            timeout_s: how long.
            sleep: waits so many seconds.
        """
        deadline = time.monotonic() + timeout_s
        while (left := self._exchange.outstanding(loans)) and time.monotonic() < deadline:
            sleep(0.001)
        return left

    def catch_up(self) -> None:
        """Wait until everything is decoded that CUPTI has completed so far."""
        if self._worker is not None:
            signal, caught_up = next(self._signals), threading.Event()
            self._caught_up[signal] = caught_up
            self._exchange.post(signal)
            caught_up.wait()

    def taken(self) -> list[Records]:
        """Return what was decoded since this was last asked for, and forget it."""
        # the worker may add to it meanwhile: that stays for the next time
        taken = [self.records.popleft() for _ in range(len(self.records))]
        self._taken_bytes += sum(one.n_bytes for one in taken)
        return taken

    def finish(self) -> None:
        """Decode what there is, and end. A second call does nothing."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        self._exchange.end()
        self._exchange.post(_END)
        worker.join()
        self._exchange.trim()  # now that all buffers are free

    def _work(self) -> None:
        while (item := self._exchange.next()) != _END:
            if not isinstance(item, int):
                self._take(item)
            elif item == INTERRUPTED:
                _thread.interrupt_main()
            elif caught_up := self._caught_up.pop(item, None):
                caught_up.set()

    def _take(self, buffer: FilledBuffer) -> None:
        try:
            if buffer.valid_bytes:
                self._keep(decode(buffer.valid(), self._layout, self._text_at))
        except Exception as error:  # noqa: BLE001  # one buffer must not cost the others
            self.errors.append(f"a buffer of {buffer.valid_bytes} bytes could not be decoded: {error!r}")
        finally:
            self._exchange.give_back(buffer)

    def _keep(self, records: Records) -> None:
        rows = records.of.get(ActivityKind.OVERHEAD)
        if self._free is not None and rows is not None:
            data = rows["overheadData"][rows["overheadKind"] == _COMMAND_BUFFER_FULL]
            for address in data[data != 0].tolist():
                self._free(address)
        self._bytes += records.n_bytes
        if self._bytes - self._taken_bytes > MOST_BYTES:
            self.unkept += len(records)
        else:
            self.records.append(records)
