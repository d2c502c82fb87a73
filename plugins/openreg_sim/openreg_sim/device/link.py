"""`RuntimeLink`: between the native device and the runtime.

Launches and other calls that do not wait pile up in the native ring; `drain` takes them to the runtime. Calls that wait, and
questions, come up from C++ on the calling thread, and the runtime answers them.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from openreg_sim.device.library import API_CALLBACK, DRAIN_CALLBACK, INTERRUPTED, ApiCall
from openreg_sim.ring import RING_DTYPE

if TYPE_CHECKING:
    from openreg_sim.runtime import Runtime

__all__ = ["RuntimeLink"]

_log = logging.getLogger("openreg_sim")

# Keep Python's trace and profile functions of this thread out of what follows, until resumed. A device's wait has no Python
# frames, so those of this one shall not show in a profile with stacks. Both calls must be in one frame, of which the profile
# function then sees the call and the return; neither does the interpreter report calls of ctypes functions to it.
_thread_state = ctypes.pythonapi.PyThreadState_Get
_thread_state.restype, _thread_state.argtypes = ctypes.c_void_p, ()
_suspend_tracing = ctypes.pythonapi.PyThreadState_EnterTracing
_suspend_tracing.restype, _suspend_tracing.argtypes = None, (ctypes.c_void_p,)
_resume_tracing = ctypes.pythonapi.PyThreadState_LeaveTracing
_resume_tracing.restype, _resume_tracing.argtypes = None, (ctypes.c_void_p,)


class RuntimeLink:
    """Connects a library with a runtime, from `open` to `close`.

    The library's callbacks run on whatever thread makes the call, which may hold no GIL until ctypes takes it for them.
    """

    def __init__(self, library: ctypes.CDLL, runtime: Runtime) -> None:
        self.library = library
        self.runtime = runtime
        self._lock = threading.Lock()
        self._draining_thread = 0
        # C++ keeps these addresses, so the objects must live as long as the process
        self._drain_callback = DRAIN_CALLBACK(self._on_full_ring)
        self._api_callback = API_CALLBACK(self._on_api_call)
        self._answers: dict[int, Callable[[int, int], float | None]] = {
            ApiCall.DEVICE_SYNCHRONIZE: lambda device, _: runtime.device_synchronize(device),
            ApiCall.STREAM_SYNCHRONIZE: runtime.stream_synchronize,
            ApiCall.STREAM_QUERY: runtime.stream_query,
            ApiCall.EVENT_SYNCHRONIZE: lambda event, _: runtime.event_synchronize(event),
            ApiCall.EVENT_QUERY: lambda event, _: runtime.event_query(event),
            ApiCall.EVENT_ELAPSED: runtime.event_elapsed_ms,
        }

    def open(self) -> None:
        """Let calls of the device reach the runtime."""
        self.runtime.set_names(self.op_name, self.signature)
        self.runtime.set_drain(self.drain)
        self.library.orSetDrainCallback(self._drain_callback)
        self.library.orSetApiCallback(self._api_callback)
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
        )

    def close(self) -> bool:
        """Let no call reach Python any more; waits for those that are on their way, five seconds at most.

        Called at exit: a thread that asks for the GIL of an ending interpreter would be killed.

        Returns:
            True if none was left behind.
        """
        return bool(self.library.orShutdown())

    def drain(self) -> None:
        """Take the calls that are in the ring to the runtime, in order. Any thread.

        A call from within itself on one thread, by a finalizer that the garbage collector runs, does nothing: its records
        would overtake those in hand.
        """
        if self._draining_thread == threading.get_ident():
            return
        with self._lock:
            self._draining_thread = threading.get_ident()
            try:
                records = self._take()
                if len(records):
                    self.runtime.replay(records)
            finally:
                self._draining_thread = 0

    def _take(self) -> npt.NDArray[np.void]:
        pending = self.library.orRingPending()
        records = np.empty(pending, RING_DTYPE)
        taken = self.library.orRingDrain(records.ctypes.data, pending) if pending else 0
        return records[:taken]

    def op_name(self, number: int) -> str:
        """Return the name of the op that launched, such as ``"aten::mm"``."""
        name: bytes | None = self.library.orOpName(number)
        return name.decode() if name is not None else "unknown"

    def signature(self, number: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return dtype and shape of each tensor argument of a launch; empty for one that is unknown."""
        size = self.library.orSignature(number, None, 0)
        values = (ctypes.c_int64 * size)()
        self.library.orSignature(number, values, size)
        tensors, at = [], 0
        while at < size:
            first_size, dim = at + 2, values[at + 1]
            dtype: bytes = self.library.orDtypeName(values[at])
            tensors.append((dtype.decode(), tuple(values[first_size : first_size + dim])))
            at = first_size + dim
        return tuple(tensors)

    def _on_full_ring(self) -> int:
        thread = _thread_state()
        _suspend_tracing(thread)
        try:
            self.drain()
            return 0
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException:  # noqa: BLE001  # nothing may pass through C++; the calls in hand are lost
            _log.exception("the runtime could not take the calls of the device")
            return 0
        finally:
            _resume_tracing(thread)

    def _on_api_call(self, call: int, a: int, b: int, error: int, error_size: int) -> float:
        thread = _thread_state()
        _suspend_tracing(thread)
        try:
            return float(self._answers[call](a, b) or 0.0)
        except KeyboardInterrupt:
            _write(bytes([INTERRUPTED]), error, error_size)
        except BaseException as problem:  # noqa: BLE001  # becomes an error of torch's in the caller
            _write((str(problem) or repr(problem)).encode(), error, error_size)
        finally:
            _resume_tracing(thread)
        return 0.0


def _write(message: bytes, target: int, size: int) -> None:
    """Write a C string of at most `size` bytes, its end included, to an address."""
    text = message[: size - 1] + b"\0"
    ctypes.memmove(target, text, len(text))
