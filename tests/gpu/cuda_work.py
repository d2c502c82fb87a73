"""Work for a GPU whose right answer is known, for the smoke test: CuPy's, and cuda-python's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

SOURCE = r"""
template<typename T> __global__ void devprof_axpy(T* x, T a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = x[i] * a + T(1);
}
extern "C" __global__ void devprof_smem(float* x, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0;
    __syncthreads();
    if (t < n) x[t] = s[blockDim.x - 1 - t];
}
extern "C" __global__ void devprof_spin(long long ns) {
    long long begun, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - begun < ns);
}
"""

Ranges = Callable[[str], AbstractContextManager[Any]]


class CupyWork:
    """Kernels on two streams, copies, sets, events, a graph, another thread, and an exception in a range."""

    def __init__(self) -> None:
        import cupy as cp

        self.cp = cp
        names = ("devprof_axpy<float>", "devprof_axpy<double>")
        module = cp.RawModule(code=SOURCE, options=("-std=c++11",), name_expressions=names)
        self.f32, self.f64 = (module.get_function(name) for name in names)
        self.smem, self.spin = module.get_function("devprof_smem"), module.get_function("devprof_spin")
        self.smem.max_dynamic_shared_size_bytes = 65536
        self.x, self.y = cp.zeros(1 << 20, cp.float32), cp.zeros(1 << 20, cp.float64)
        self.streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
        self.host = cp.asnumpy(self.x)
        # each kernel once: the driver loads it at its first launch, which it may refuse while a stream is captured
        for stream in self.streams:
            with stream:
                self.kernel(64)
        self._double()
        self.smem((1,), (256,), (self.x, cp.int32(256)), shared_mem=65536)
        self.spin((1,), (1,), (cp.int64(1000),))
        self.synchronize()
        with self.streams[0]:
            self.streams[0].begin_capture()
            self.kernel(64)
            self._double()
            self.graph = self.streams[0].end_capture()
        self.graph.launch(self.streams[0])
        self.synchronize()

    def kernel(self, blocks: int = 256, n: int = 1 << 20) -> None:
        self.f32((blocks,), (256,), (self.x, self.cp.float32(1.1), self.cp.int32(n)))

    def _double(self) -> None:
        self.f64((64,), (128,), (self.y, self.cp.float64(1.5), self.cp.int32(1 << 20)))

    def leave_running(self, ns: int, n: int) -> bool:
        """Launch a kernel that runs so long, n behind it and n beside it; return whether it still runs."""
        with self.streams[0]:
            self.spin((1,), (1,), (self.cp.int64(ns),))
        for stream in self.streams:
            with stream:
                for _ in range(n):
                    self.kernel(64)
        return not self.streams[0].done

    def synchronize(self) -> None:
        self.cp.cuda.Device().synchronize()

    def everything(self, ranges: Ranges) -> dict[str, int]:
        """Run it all, and return how many kernels each range launched."""
        launched = {"streams": self._two_streams(ranges), "nested": 0}
        with ranges("shared memory"):
            self.smem((1,), (256,), (self.x, self.cp.int32(256)), shared_mem=65536)
            launched["shared memory"] = 1
        with ranges("copies"):
            self.x.set(self.host)
            self.cp.asnumpy(self.x)
            self.x.data.memset(0, self.x.nbytes)
            launched["copies"] = 0
        with ranges("graph"):
            for _ in range(3):
                self.graph.launch(self.streams[0])
            launched["graph"] = 6
        launched["nested"] = self._nested(ranges)
        launched["thread"] = self._in_thread(ranges)
        launched["raises"] = self._raises(ranges)
        self.kernel(64)
        launched["none"] = 1
        for stream in self.streams:
            stream.synchronize()
        self.synchronize()
        return launched

    def _two_streams(self, ranges: Ranges, n: int = 100) -> int:
        with ranges("streams"):
            for i in range(n):
                with self.streams[i % 2]:
                    self.kernel()
            event = self.cp.cuda.Event()
            event.record(self.streams[0])
            self.streams[1].wait_event(event)
            event.synchronize()
        return n

    def _nested(self, ranges: Ranges) -> int:
        with ranges("outside"), ranges("nested"):
            self.kernel(64)
            self.kernel(64)
        return 2

    def _in_thread(self, ranges: Ranges) -> int:
        def work() -> None:
            with ranges("thread"), self.cp.cuda.Stream(non_blocking=True) as stream:
                self.kernel(64)
                stream.synchronize()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return 1

    def _raises(self, ranges: Ranges) -> int:
        try:
            with ranges("raises"):
                self.kernel(64)
                raise KeyError("inside a range")
        except KeyError:
            return 1

    def launch_us(self, n: int) -> float:
        """Launch n small kernels on one stream; return what one launch took on the host."""
        with self.streams[0]:
            self.kernel(1, 32)
            self.synchronize()
            begun = time.perf_counter()
            for _ in range(n):
                self.kernel(1, 32)
            ended = time.perf_counter()
            self.synchronize()
        return (ended - begun) / n * 1e6


def allocations(ranges: Ranges) -> None:
    """Allocate one and two MiB of the device and one of the host, pinned, and free them in that order."""
    import cupy as cp

    runtime, mib = cp.cuda.runtime, 1 << 20
    with ranges("takes"):
        first, second, pinned = runtime.malloc(mib), runtime.malloc(2 * mib), runtime.hostAlloc(mib, 0)
    with ranges("gives"):
        runtime.free(first)
        runtime.free(second)
        runtime.freeHost(pinned)


def pooled_allocation() -> None:
    """Allocate and free a MiB in the order of a stream, from the device's pool."""
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.runtime.freeAsync(cp.cuda.runtime.mallocAsync(1 << 20, stream.ptr), stream.ptr)
    stream.synchronize()


def cuda_python_kernels(n: int, before_each: Callable[[int], AbstractContextManager[Any]]) -> None:
    """Compile a kernel with NVRTC and launch it n times with cuLaunchKernel, as a program on cuda-python does."""
    from cuda.bindings import driver, nvrtc

    def done(answer: tuple[Any, ...]) -> Any:
        assert int(answer[0]) == 0, answer
        return answer[1] if len(answer) == 2 else answer[1:]

    done(driver.cuInit(0))
    device = done(driver.cuDeviceGet(0))
    context = done(driver.cuDevicePrimaryCtxRetain(device))
    done(driver.cuCtxSetCurrent(context))
    parts = (f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}" for part in ("MAJOR", "MINOR"))
    major, minor = (done(driver.cuDeviceGetAttribute(driver.CUdevice_attribute[part], device)) for part in parts)
    program = done(nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void devprof_plain() {}', b"k.cu", 0, [], []))
    # machine code, because NVRTC may be newer than the driver, which then does not read its PTX
    done(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{major}{minor}".encode()]))
    code = b" " * done(nvrtc.nvrtcGetCUBINSize(program))
    done(nvrtc.nvrtcGetCUBIN(program, code))
    kernel = done(driver.cuModuleGetFunction(done(driver.cuModuleLoadData(code)), b"devprof_plain"))
    for i in range(n):
        with before_each(i):
            done(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0))
    done(driver.cuCtxSynchronize())
