"""A stand-in for libcupti and libcuda at the seam of their C functions, for tests without a GPU.

It knows nothing of CUDA: it writes records byte by byte by the published layouts into the buffers that it requests, and hands
them back, as the headers say CUPTI does. Every function is a C function pointer of the real prototype: arguments are converted,
and the GIL is dropped, as with the library. It shows that devprof keeps its side of the calls, not that CUPTI keeps its own.
"""

from __future__ import annotations

import ctypes as c
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda_cupti import binding, driver
from cuda_cupti.access import Access, calibrated
from cuda_cupti.discovery import Found
from cuda_cupti.layouts import ActivityKind, expected

K = ActivityKind
VERSION = 130001


class StandIn:
    """The library and the driver.

    Attributes:
        calls: how often each function was called.
        log: functions and their first argument, in order.
        fail: results to answer with, by function, or by function and first argument.
        enabled: kinds that are on.
        muted: cbids that are off, by kind.
        on_own_thread: hand buffers back on a thread that Python did not make.
        holds: hand back only so many buffers from now on; None: all.
        lose: lose the records of so many kernels, and count them.
        broken_device: waiting for it fails, once, as after an illegal access.
        waits_in_vain: waiting for the primary contexts does not end what runs, because it runs on others.
    """

    def __init__(self, devices: int = 2, version: int = VERSION) -> None:
        self.calls: Counter[str] = Counter()
        self.log: list[tuple[Any, ...]] = []
        self.fail: dict[Any, int] = {}
        self.enabled: set[int] = set()
        self.muted: dict[int, set[int]] = {K.RUNTIME: set(), K.DRIVER: set()}
        self.on_own_thread = True
        self.holds: int | None = None
        self.version, self.devices = version, devices
        self.attributes, self.thread_ids, self.subscriber = {5: 0, 9: 1}, 0, 0
        self.layout = expected(version)
        self.dropped = self.requests = 0
        self.lose = 0
        self.broken_device: int | None = None
        self.waits_in_vain = False
        self.texts: dict[str, c.Array[c.c_char]] = {}
        self._callbacks: tuple[Any, Any] = (None, None)
        self._buffer: list[int] = []
        self._withheld: list[list[int]] = []
        self._running: list[Callable[[], None]] = []
        self._stacks: dict[tuple[int, int], list[int]] = {}
        self._blocks: dict[int, tuple[int, int, int]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self.functions = {name: self._function(name, of) for name, of in binding.PROTOTYPES.items()}
        self.driver_functions = {name: self._function(name, of) for name, of in driver.PROTOTYPES.items()}

    def access(self) -> Access:
        """Return what opening the library would."""
        cupti = binding.Cupti(self.functions, "/stand-in/libcupti.so.13")
        drive = driver.Driver(self.driver_functions)
        layout, doubts = calibrated(cupti)
        return Access(cupti, drive, layout, Found(cupti.path, "given by a test"), drive.devices(), doubts)

    # -- what a program does --------------------------------------------------------------------------------------------

    def kernel(self, name: str = "k", device: int = 0, stream: int = 7, *, runs: bool = False, n: int = 1) -> int:
        """Launch kernels from the calling thread by one call; with `runs` they do not end before `end_all`."""
        number, at = self._call(K.RUNTIME, 211)
        for node in range(n):
            start = at + 5_000 + node * 2_000
            fields = {"start": start, "end": start + 1_000, "deviceId": device, "contextId": device + 1, "streamId": stream,
                      "correlationId": number, "name": c.addressof(self._text(name)), "gridX": 1, "gridY": 1, "gridZ": 1,
                      "blockX": 32, "blockY": 1, "blockZ": 1, "graphNodeId": node + 1 if n > 1 else 0,
                      "graphId": 9 if n > 1 else 0}  # fmt: skip
            write = lambda fields=fields: self._write(K.CONCURRENT_KERNEL, **fields)  # noqa: E731
            if self.lose:
                self.lose -= 1
                self.dropped += K.CONCURRENT_KERNEL in self.enabled
            elif runs and K.CONCURRENT_KERNEL in self.enabled:
                self._running.append(write)
            else:
                write()
        time.sleep(0.00002 * n)
        return number

    def copy(self, n_bytes: int, *, back: bool = False) -> None:
        number, at = self._call(K.RUNTIME, 41)
        kind, source, target = (2, 3, 1) if back else (1, 1, 3)
        self._write(K.MEMCPY, copyKind=kind, srcKind=source, dstKind=target, bytes=n_bytes, start=at + 5_000, end=at + 6_000,
                    contextId=1, streamId=7, correlationId=number)  # fmt: skip
        time.sleep(0.00001)

    def set(self, n_bytes: int) -> None:
        number, at = self._call(K.RUNTIME, 51)
        self._write(K.MEMSET, bytes=n_bytes, start=at + 5_000, end=at + 6_000, contextId=1, streamId=7, memoryKind=3,
                    correlationId=number)  # fmt: skip
        time.sleep(0.00001)

    def allocate(self, n_bytes: int, device: int = 0, kind: int = 3) -> int:
        """Allocate memory: 3 a device's, 2 the host's, pinned. Returns its address."""
        number, at = self._call(K.RUNTIME, 20)
        address = 0x7F00_0000_0000 + number * (1 << 20)
        self._blocks[address] = (n_bytes, device, kind)
        self._memory(1, address, number, at)
        return address

    def free(self, address: int) -> None:
        """Free memory; an address that was not allocated here has 4096 bytes on the first device."""
        number, at = self._call(K.RUNTIME, 22)
        self._memory(2, address, number, at)
        self._blocks.pop(address, None)

    def _memory(self, operation: int, address: int, number: int, at: int) -> None:
        n_bytes, device, kind = self._blocks.get(address, (4096, 0, 3))
        self._write(K.MEMORY2, memoryOperationType=operation, memoryKind=kind, address=address, bytes=n_bytes,
                    timestamp=at + 500, deviceId=device, contextId=device + 1, streamId=0xFFFFFFFF,
                    correlationId=number)  # fmt: skip
        time.sleep(0.00001)

    def wait(self, device: int = 0) -> None:
        """Wait for all work of a device's primary context."""
        number, at = self._call(K.RUNTIME, 165)
        self._write(K.SYNCHRONIZATION, type=4, start=at, end=at + 1_000, correlationId=number, contextId=device + 1,
                    streamId=0xFFFFFFFF, cudaEventId=0xFFFFFFFF)  # fmt: skip

    def call(self, cbid: int, kind: int = K.RUNTIME) -> int:
        """Make an API call that launches nothing."""
        return self._call(kind, cbid)[0]

    def overhead(self, data: int, kind: int = 6) -> None:
        now = time.time_ns()
        self._write(K.OVERHEAD, overheadKind=kind << 16, objectKind=1, start=now - 10, end=now, overheadData=data)

    def raw(self, data: bytes) -> None:
        """Write bytes into the buffer as they are."""
        self._put(data)

    def end_all(self) -> None:
        """Let the running kernels end."""
        while self._running:
            self._running.pop(0)()

    def depth(self, kind: int) -> int:
        """Return how many ids the calling thread has on CUPTI's stack of a kind."""
        return len(self._stacks.get((threading.get_native_id(), kind), []))

    def push_foreign(self, kind: int, id: int) -> None:
        """Push an id as another client would."""
        self._stacks.setdefault((threading.get_native_id(), kind), []).append(id)

    def give_late(self) -> None:
        """Hand back what `holds` kept back."""
        self.holds = None
        while self._withheld:
            self._complete(self._withheld.pop(0))

    # -- the library ----------------------------------------------------------------------------------------------------

    def _function(self, name: str, prototype: Any) -> Any:
        body = getattr(self, f"_{name}", None)

        def answer(*arguments: Any) -> int:
            self.calls[name] += 1
            first = arguments[0] if arguments and isinstance(arguments[0], int) else None
            self.log.append((name, first))
            for key in ((name, first), name):
                if key in self.fail:
                    return self.fail[key]
            return (body(*arguments) if body else 0) or 0

        return prototype(answer)

    def _cuptiGetVersion(self, found: Any) -> None:
        found[0] = self.version

    def _cuptiGetTimestamp(self, found: Any) -> None:
        found[0] = time.time_ns()

    def _cuptiGetResultString(self, code: int, text: Any) -> None:
        text[0] = b"CUPTI_ERROR_OF_THE_STAND_IN"

    def _cuptiGetContextId(self, context: int, found: Any) -> None:
        found[0] = context - 0x1000

    def _cuptiSetThreadIdType(self, kind: int) -> None:
        self.thread_ids = kind

    def _cuptiGetThreadIdType(self, found: Any) -> None:
        found[0] = self.thread_ids

    def _cuptiSubscribe(self, handle: Any, callback: Any, data: Any) -> int:
        if self.subscriber or self.enabled:  # also where somebody records without a subscription, as the header says
            return 39
        self.subscriber, handle[0] = 1, 0x77
        return 0

    def _cuptiUnsubscribe(self, handle: int) -> int:
        assert handle == 0x77
        self.subscriber = 0
        return 0

    def _cuptiActivityRegisterCallbacks(self, requested: Any, completed: Any) -> None:
        # by address, as C keeps it: the Python objects that the caller holds must outlive it
        self._callbacks = (
            binding.BufferRequested(c.cast(requested, c.c_void_p).value),
            binding.BufferCompleted(c.cast(completed, c.c_void_p).value),
        )

    def _cuptiActivityEnable(self, kind: int) -> None:
        self.enabled.add(kind)
        if kind in self.muted:
            self.muted[kind] = set()

    def _cuptiActivityDisable(self, kind: int) -> None:
        self.enabled.discard(kind)

    def _cuptiActivityEnableRuntimeApi(self, cbid: int, on: int) -> None:
        (self.muted[K.RUNTIME].discard if on else self.muted[K.RUNTIME].add)(cbid)

    def _cuptiActivityEnableDriverApi(self, cbid: int, on: int) -> None:
        (self.muted[K.DRIVER].discard if on else self.muted[K.DRIVER].add)(cbid)

    def _cuptiActivityFlushAll(self, flag: int) -> None:
        with self._lock:
            if self._running and not flag:
                return
            self._running.clear() if flag else None
            self._hand_back()

    def _cuptiActivityGetNextRecord(self, buffer: int, size_bytes: int, record: Any) -> int:
        kind = c.cast(buffer, c.POINTER(c.c_uint32))[0]
        stride = self.layout.strides.get(kind, 0)
        if not stride:
            return 21
        at = buffer if not record[0] else record[0] + stride
        record[0] = at
        return 0

    def _cuptiActivityGetNumDroppedRecords(self, context: Any, stream: int, found: Any) -> None:
        found[0], self.dropped = self.dropped, 0

    def _cuptiActivityGetAttribute(self, attribute: int, size: Any, value: int) -> int:
        if attribute not in self.attributes:
            return 1
        c.cast(value, c.POINTER(c.c_uint8))[0] = self.attributes[attribute]
        return 0

    def _cuptiActivitySetAttribute(self, attribute: int, size: Any, value: int) -> int:
        if attribute not in self.attributes:
            return 1
        self.attributes[attribute] = c.cast(value, c.POINTER(c.c_uint8))[0]
        return 0

    def _cuptiActivityPushExternalCorrelationId(self, kind: int, id: int) -> None:
        self.push_foreign(kind, id)

    def _cuptiActivityPopExternalCorrelationId(self, kind: int, last: Any) -> int:
        stack = self._stacks.get((threading.get_native_id(), kind), [])
        if not stack:
            return 18
        last[0] = stack.pop()
        return 0

    # -- the driver -----------------------------------------------------------------------------------------------------

    def _cuDriverGetVersion(self, found: Any) -> None:
        found[0] = 13000

    def _cuGetErrorName(self, code: int, text: Any) -> None:
        text[0] = b"CUDA_ERROR_OF_THE_STAND_IN"

    def _cuDeviceGetCount(self, found: Any) -> None:
        found[0] = self.devices

    def _cuDeviceGet(self, found: Any, index: int) -> None:
        found[0] = index

    def _cuDeviceGetName(self, text: int, size: int, device: int) -> None:
        c.memmove(text, b"Stand-in GPU\0", 13)

    def _cuDeviceGetAttribute(self, found: Any, attribute: int, device: int) -> None:
        found[0] = 1024

    def _cuDevicePrimaryCtxGetState(self, device: int, flags: Any, active: Any) -> None:
        active[0] = 1

    def _cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> None:
        context[0] = 0x1001 + device

    def _cuCtxPushCurrent_v2(self, context: int) -> None:
        self._current = context - 0x1001

    def _cuCtxSynchronize(self) -> int:
        if not self.waits_in_vain:
            self.end_all()
        broken = self._current == self.broken_device
        if broken:
            self.broken_device = None
        return 700 if broken else 0

    # -- records --------------------------------------------------------------------------------------------------------

    def _call(self, kind: int, cbid: int) -> tuple[int, int]:
        """Record an API call, with the external ids before it; return its correlation id and start."""
        number, now = next(self._numbers), time.time_ns()
        if kind in self.enabled and cbid not in self.muted[kind]:
            if K.EXTERNAL_CORRELATION in self.enabled:
                me = threading.get_native_id()
                for (thread, external), stack in list(self._stacks.items()):
                    if thread == me and stack:
                        self._write(
                            K.EXTERNAL_CORRELATION, externalKind=external, externalId=stack[-1], correlationId=number
                        )
            self._write(
                kind, cbid=cbid, start=now, end=now + 2_000, threadId=threading.get_native_id(), correlationId=number
            )
        return number, now

    def _text(self, name: str) -> c.Array[c.c_char]:
        return self.texts.setdefault(name, c.create_string_buffer(name.encode("utf-8", "surrogatepass")))

    def _write(self, kind: int, **fields: Any) -> None:
        if kind not in self.enabled:
            return
        row = np.zeros(1, self.layout.dtype(kind))
        row["kind"] = kind
        for name, value in fields.items():
            row[name] = value
        self._put(row.tobytes())

    def _put(self, data: bytes) -> None:
        with self._lock:
            if self._buffer and self._buffer[2] + len(data) > self._buffer[1]:
                self._hand_back()
            if not self._buffer and not self._request():
                self.dropped += 1
                return
            c.memmove(self._buffer[0] + self._buffer[2], data, len(data))
            self._buffer[2] += len(data)

    def _request(self) -> bool:
        self.requests += 1
        address, size, most = c.c_void_p(0xDEAD), c.c_size_t(), c.c_size_t()
        self._callbacks[0](c.pointer(address), c.pointer(size), c.pointer(most))
        if address.value:
            held = c.string_at(address.value, size.value)
            assert not any(held) or not self.attributes[5], "a buffer that is said to be cleared is not"
            self._buffer = [address.value, size.value, 0]
        return bool(address.value)

    def _hand_back(self) -> None:
        buffer, self._buffer = self._buffer, []
        if not buffer:
            return
        if self.holds is not None and self.holds <= 0:
            self._withheld.append(buffer)
            return
        if self.holds is not None:
            self.holds -= 1
        self._complete(buffer)

    def _complete(self, buffer: list[int]) -> None:
        address, size, valid = buffer
        if self.on_own_thread:
            on_foreign_thread(lambda: self._callbacks[1](None, 0, address, size, valid))
        else:
            self._callbacks[1](None, 0, address, size, valid)


_libc = c.CDLL(None)
_Routine = c.CFUNCTYPE(c.c_void_p, c.c_void_p)


def on_foreign_thread(body: Callable[[], object]) -> None:
    """Run `body` on a thread that Python did not make, and wait for it."""

    @_Routine
    def routine(_: Any) -> int:
        body()
        return 0

    thread = c.c_ulong()
    assert _libc.pthread_create(c.byref(thread), None, routine, None) == 0
    _libc.pthread_join(thread, None)


class Workload:
    """The stand-in as the conformance kit's device."""

    exact_names = True
    devices = 2
    streams = 2

    def __init__(self, stand_in: StandIn) -> None:
        self._it = stand_in

    def launch(self, name: str, n: int, device: int = 0, stream: int = 0) -> None:
        for _ in range(n):
            self._it.kernel(name, device, 7 + stream)

    def copy(self, n_bytes: int) -> None:
        self._it.copy(n_bytes)

    def set(self, n_bytes: int) -> None:
        self._it.set(n_bytes)

    def graph(self, name: str, n: int) -> None:
        self._it.kernel(name, n=n)

    def allocate(self, n_bytes: int) -> int:
        return self._it.allocate(n_bytes)

    def free(self, address: int) -> None:
        self._it.free(address)

    def synchronize(self) -> None:
        self._it.end_all()

    def device_calls(self) -> int:
        return self._it.calls.total()

    def lose(self, n: int) -> None:
        self._it.lose = n

    def fail(self) -> None:
        self._it.broken_device = 0
