"""Work for a GPU without any framework, for ``devprof conform cuda`` and the smoke test: the driver compiles the kernels."""

from __future__ import annotations

import ctypes as c
import threading
from typing import Any

from cuda_cupti.driver import load_driver
from cuda_cupti.errors import CudaUnavailableError

__all__ = ["Workload"]

_PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry {name}()
{{
    ret;
}}
"""
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_ROOM_BYTES = 1 << 20
_TOO_MANY_THREADS = 1 << 20


class Workload:
    """Kernels that do nothing, copies, sets and graphs, through the driver's API on the primary contexts."""

    exact_names = False  # a kernel's name is an identifier

    def __init__(self) -> None:
        """Start the driver, and take the primary context of every GPU, two at most.

        Raises:
            CudaUnavailableError: there is no driver, it does not start, or it is not whole; the message says what to do.
            RuntimeError: the driver refuses.
        """
        self._driver = load_driver()
        self._driver.start()
        self._cuda = c.CDLL("libcuda.so.1")
        self._calls, self._fails = 0, False
        count = c.c_int()
        self._call("cuDeviceGetCount", c.byref(count))
        self.devices = min(count.value, 2)
        self.streams = 2
        self._contexts = [self._context(device) for device in range(self.devices)]
        self._kernels: dict[tuple[int, str], c.c_void_p] = {}
        self._lock = threading.Lock()
        self._enter(0)
        self._side_stream = self._new_stream()
        self._room = c.c_void_p()
        self._call("cuMemAlloc_v2", c.byref(self._room), c.c_size_t(_ROOM_BYTES))

    def launch(self, name: str, n: int, device: int = 0, stream: int = 0) -> None:
        """Launch kernels; stream 1 is one beside the default stream."""
        kernel = self._kernel(device, name)
        for _ in range(n):
            self._launch(kernel, self._side_stream if stream else None)

    def copy(self, n_bytes: int) -> None:
        """Copy from the host, a megabyte at most."""
        self._enter(0)
        self._call("cuMemcpyHtoD_v2", self._room, bytes(n_bytes), c.c_size_t(n_bytes))

    def set(self, n_bytes: int) -> None:
        """Set device memory, a megabyte at most."""
        self._enter(0)
        self._call("cuMemsetD8_v2", self._room, c.c_ubyte(1), c.c_size_t(n_bytes))

    def allocate(self, n_bytes: int) -> int:
        """Allocate device memory, and return its address."""
        self._enter(0)
        address = c.c_uint64()
        self._call("cuMemAlloc_v2", c.byref(address), c.c_size_t(n_bytes))
        return address.value

    def free(self, address: int) -> None:
        """Free what `allocate` gave."""
        self._enter(0)
        self._call("cuMemFree_v2", c.c_uint64(address))

    def graph(self, name: str, n: int) -> None:
        """Launch one graph of n kernels."""
        kernel, stream, graph, ready = self._kernel(0, name), self._side_stream, c.c_void_p(), c.c_void_p()
        self._call("cuStreamBeginCapture_v2", stream, _RELAXED)
        for _ in range(n):
            self._launch(kernel, stream)
        self._call("cuStreamEndCapture", stream, c.byref(graph))
        self._call("cuGraphInstantiateWithFlags", c.byref(ready), graph, c.c_ulonglong(0))
        self._call("cuGraphLaunch", ready, stream)
        self._call("cuStreamSynchronize", stream)
        self._call("cuGraphExecDestroy", ready)
        self._call("cuGraphDestroy", graph)

    def synchronize(self) -> None:
        """Wait for all devices."""
        for device in range(self.devices):
            self._enter(device)
            self._call("cuCtxSynchronize")
        self._enter(0)

    def fail(self) -> None:
        """Let the next launch fail, with an error that does not stay."""
        self._fails = True

    def device_calls(self) -> int:
        """Return how many calls of the driver this workload has made."""
        return self._calls

    def _context(self, device: int) -> c.c_void_p:
        context = c.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", c.byref(context), device)
        return context

    def _enter(self, device: int) -> None:
        self._call("cuCtxSetCurrent", self._contexts[device])

    def _new_stream(self) -> c.c_void_p:
        stream = c.c_void_p()
        self._call("cuStreamCreate", c.byref(stream), _NON_BLOCKING)
        return stream

    def _kernel(self, device: int, name: str) -> c.c_void_p:
        self._enter(device)
        with self._lock:
            if (device, name) not in self._kernels:
                module, kernel = c.c_void_p(), c.c_void_p()
                self._call("cuModuleLoadData", c.byref(module), _PTX.format(name=name).encode() + b"\0")
                self._call("cuModuleGetFunction", c.byref(kernel), module, name.encode())
                self._kernels[device, name] = kernel
            return self._kernels[device, name]

    def _launch(self, kernel: c.c_void_p, stream: c.c_void_p | None) -> None:
        threads, self._fails = _TOO_MANY_THREADS if self._fails else 32, False
        self._call("cuLaunchKernel", kernel, 1, 1, 1, threads, 1, 1, 0, stream, None, None)

    def _call(self, function: str, *arguments: Any) -> None:
        self._calls += 1
        try:
            of_driver = getattr(self._cuda, function)
        except AttributeError as error:
            raise CudaUnavailableError(f"the driver's library has no {function}; install the driver again") from error
        if code := of_driver(*arguments):
            raise RuntimeError(f"{function} answered {self._driver.describe(code)}")
