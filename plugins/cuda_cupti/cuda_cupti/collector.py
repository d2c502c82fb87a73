"""Collecting a session's records: buffers go out to CUPTI and come back, and are decoded on a thread of our own."""

from __future__ import annotations

import _thread
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from cuda_cupti.binding import BufferCompleted, BufferRequested
from cuda_cupti.buffers import Buffer, BufferPool
from cuda_cupti.decode import Records, TextAt, decode
from cuda_cupti.layouts import ActivityKind, Layout

__all__ = ["MOST_BYTES", "Collector", "Exchange", "c_string"]

MOST_BYTES = 4 << 30
"""A session keeps at most this much of records; beyond, they are counted and let go."""

_READY_BUFFERS = 2
_KEPT_BUFFERS = 8
_INTERRUPTED = object()


def c_string(address: int) -> bytes:
    """Read the C string at an address, which CUPTI says is there."""
    return ctypes.string_at(address)


class Exchange:
    """The two functions that CUPTI calls for buffers, for the life of the process, whichever session is on.

    They run inside CUPTI: on the thread that made a CUDA call, on CUPTI's own worker, or within a flush. So they take no lock,
    call nothing of CUDA, and let no exception out.

    Attributes:
        requested, completed: to register with CUPTI; CUPTI may call them until the process ends.
        pool: the buffers.
        late: buffers that came back after their session had ended.
    """

    def __init__(self, pool: BufferPool | None = None) -> None:
        """Make the functions, which nobody calls yet."""
        self.pool = pool or BufferPool()
        self.requested: Any = BufferRequested(self._requested)
        self.completed: Any = BufferCompleted(self._completed)
        self.late: list[Buffer] = []
        self._session = 0
        self._filled: SimpleQueue[object] | None = None

    def begin(self, filled: SimpleQueue[object]) -> int:
        """Start a session, whose completed buffers go to `filled`; return its number. Not inside CUPTI.

        Raises:
            OSError: there is no memory for buffers.
        """
        while self.late:
            self.pool.give_back(self.late.pop())
        self.pool.reserve(_READY_BUFFERS)
        self._session += 1
        self._filled = filled
        return self._session

    def end(self) -> None:
        """End the session: what comes back from now on is late."""
        self._filled = None
        self.pool.trim(_KEPT_BUFFERS)

    def _requested(self, buffer: Any, size_bytes: Any, most_records: Any) -> None:
        lent, interrupted = None, False
        try:
            lent = self.pool.lend(self._session)
        except BaseException:  # noqa: BLE001  # a user's Ctrl-C, on their thread, which ctypes would swallow
            interrupted = True
            lent = lent or self.pool.lend(self._session)
        most_records[0] = 0  # as many as fit
        size_bytes[0] = 0 if lent is None else self.pool.size_bytes
        buffer[0] = None if lent is None else lent.address
        if interrupted:
            self._put(_INTERRUPTED)

    def _completed(self, context: object, stream: int, address: int | None, size_bytes: int, valid_bytes: int) -> None:
        buffer = None
        try:
            buffer = self.pool.take_back(address or 0, valid_bytes)
            self._pass_on(buffer)
        except BaseException:  # noqa: BLE001  # as above
            if buffer is None:
                buffer = self.pool.take_back(address or 0, valid_bytes)
                self._pass_on(buffer)
            self._put(_INTERRUPTED)

    def _pass_on(self, buffer: Buffer | None) -> None:
        if buffer is None:
            return
        if buffer.session != self._session or not self._put(buffer):
            self.late.append(buffer)

    def _put(self, item: object) -> bool:
        filled = self._filled
        if filled is not None:
            filled.put(item)
        return filled is not None


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
        self._filled: SimpleQueue[object] = SimpleQueue()
        self._session = 0
        self._bytes = self._taken_bytes = 0  # one is the worker's to write, the other the taker's
        self._worker: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread that decodes, and take completed buffers from now on.

        Raises:
            OSError: there is no memory for buffers.
        """
        self._session = self._exchange.begin(self._filled)
        self._worker = threading.Thread(target=self._work, name="devprof-cuda-decode", daemon=True)
        self._worker.start()

    @property
    def outstanding(self) -> int:
        """How many buffers CUPTI still holds."""
        return self._exchange.pool.lent(self._session)

    def wait(self, timeout_s: float, sleep: Callable[[float], object] = time.sleep) -> bool:
        """Wait until CUPTI holds no buffer; False where it still does after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self.outstanding:
            if time.monotonic() >= deadline:
                return False
            sleep(0.001)
        return True

    def catch_up(self) -> None:
        """Wait until everything is decoded that CUPTI has completed so far."""
        if self._worker is not None:
            caught_up = threading.Event()
            self._filled.put(caught_up)
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
        self._filled.put(None)
        worker.join()

    def _work(self) -> None:
        while (item := self._filled.get()) is not None:
            if isinstance(item, Buffer):
                self._take(item)
            elif isinstance(item, threading.Event):
                item.set()
            elif item is _INTERRUPTED:
                _thread.interrupt_main()

    def _take(self, buffer: Buffer) -> None:
        try:
            if buffer.valid_bytes:
                self._keep(decode(buffer.valid(), self._layout, self._text_at))
        except Exception as error:  # noqa: BLE001  # one buffer must not cost the others
            self.errors.append(f"a buffer of {buffer.valid_bytes} bytes could not be decoded: {error!r}")
        finally:
            self._exchange.pool.give_back(buffer)

    def _keep(self, records: Records) -> None:
        rows = records.of.get(ActivityKind.OVERHEAD)
        if self._free is not None and rows is not None:
            for address in rows["overheadData"].tolist():
                if address:
                    self._free(address)
        self._bytes += records.n_bytes
        if self._bytes - self._taken_bytes > MOST_BYTES:
            self.unkept += len(records)
        else:
            self.records.append(records)
