"""Runs one mode of the smoke test on a stand-in for the library, to show that the script itself is right: nothing of CUDA.

python tests/gpu/without_gpu.py MODE
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import cuda_cupti.access
import cuda_cupti.discovery
import cuda_cupti.workload
import cuda_work
import smoke_beside
import smoke_costs
import smoke_golden
import smoke_modes
import smoke_tools
import stand_in
from cuda_work import Ranges
from stand_in import K, StandIn

AXPY = "_Z12devprof_axpyIfEvPT_S0_i"


class Library(StandIn):
    """The stand-in with what the smoke test's work needs besides."""

    def spin(self, ns: int) -> None:
        """Launch a kernel that ends so much later, when it is waited for."""
        number, at = self._call(K.RUNTIME, 211)
        end = at + 5_000 + ns

        def write() -> None:
            time.sleep(max(0, end - time.time_ns()) / 1e9)
            self._write(K.CONCURRENT_KERNEL, start=at + 5_000, end=end, contextId=1, streamId=13, correlationId=number,
                        name=stand_in.c.addressof(self._text("devprof_spin")), gridX=1, gridY=1, gridZ=1, blockX=1,
                        blockY=1, blockZ=1)  # fmt: skip

        if K.CONCURRENT_KERNEL in self.enabled:
            self._running.append(write)

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    def driver_kernel(self, name: str) -> None:
        """Launch a kernel by a call of the driver."""
        number, at = self._call(K.DRIVER, 307)
        self._write(K.CONCURRENT_KERNEL, start=at + 5_000, end=at + 6_000, contextId=1, streamId=7, correlationId=number,
                    name=stand_in.c.addressof(self._text(name)), gridX=1, gridY=1, gridZ=1, blockX=32, blockY=1,
                    blockZ=1)  # fmt: skip
        time.sleep(0.00002)

    def event_and_waits(self) -> None:
        """Record an event on one stream, and wait for it with another, and with the host."""
        number, at = self._call(K.RUNTIME, 135)
        self._write(K.CUDA_EVENT, correlationId=number, contextId=1, streamId=13, eventId=5, deviceTimestamp=at + 2_500)
        for kind, cbid in ((2, 147), (1, 137)):
            number, at = self._call(K.RUNTIME, cbid)
            self._write(K.SYNCHRONIZATION, type=kind, start=at + 100, end=at + 1_000, correlationId=number, contextId=1,
                        streamId=14 if kind == 2 else 0xFFFFFFFF, cudaEventId=5)  # fmt: skip
        time.sleep(0.00001)


LIBRARY = Library(devices=1)


class StandInWork:
    """What `cuda_work.CupyWork` does, as records of the stand-in's."""

    def kernel(self, blocks: int = 256, n: int = 1 << 20, stream: int = 7) -> None:
        LIBRARY.kernel(AXPY, stream=stream)

    def synchronize(self) -> None:
        LIBRARY.end_all()

    def leave_running(self, ns: int, n: int) -> bool:
        LIBRARY.spin(ns)
        for _ in range(n):
            LIBRARY.kernel(AXPY, stream=13, runs=True)
            LIBRARY.kernel(AXPY, stream=14)
        return LIBRARY.is_running

    def everything(self, ranges: Ranges) -> dict[str, int]:
        with ranges("streams"):
            for i in range(100):
                self.kernel(stream=13 + i % 2)
            LIBRARY.event_and_waits()
        with ranges("shared memory"):
            LIBRARY.kernel("devprof_smem")
        with ranges("copies"):
            LIBRARY.copy(4096)
            LIBRARY.copy(4096, back=True)
            LIBRARY.set(4096)
        with ranges("graph"):
            for _ in range(3):
                LIBRARY.kernel("node", stream=13, n=2)
        with ranges("outside"), ranges("nested"):
            self.kernel()
            self.kernel()
        thread = threading.Thread(target=self._in_range, args=(ranges, "thread"))
        thread.start()
        thread.join()
        self._in_range(ranges, "raises")
        self.kernel()
        return {"streams": 100, "shared memory": 1, "graph": 6, "nested": 2, "thread": 1, "raises": 1, "none": 1}

    def _in_range(self, ranges: Ranges, name: str) -> None:
        try:
            with ranges(name):
                self.kernel()
                raise KeyError
        except KeyError:
            pass

    def launch_us(self, n: int) -> float:
        begun = time.perf_counter()
        for _ in range(n + 1):
            self.kernel(1, 32)
        return (time.perf_counter() - begun) / n * 1e6


class Workload(stand_in.Workload):
    """What `cuda_cupti.workload.Workload` does."""

    exact_names = False
    devices = 1

    def __init__(self) -> None:
        super().__init__(LIBRARY)


def allocations(ranges: Ranges) -> None:
    with ranges("takes"):
        first, second = LIBRARY.allocate(1 << 20), LIBRARY.allocate(2 << 20)
        pinned = LIBRARY.allocate(1 << 20, kind=2)
    with ranges("gives"):
        for address in (first, second, pinned):
            LIBRARY.free(address)


def cuda_python_kernels(n: int, before_each: Any) -> None:
    for i in range(n):
        with before_each(i):
            LIBRARY.driver_kernel("devprof_plain")


def main(mode: str) -> None:
    """Run the mode in this process, as `smoke_tools.run` does."""
    opened = LIBRARY.access(), os.getpid()
    modules = (smoke_modes, smoke_golden, smoke_beside, smoke_costs)
    replaced: list[tuple[Any, str, Any]] = [
        (cuda_cupti.access, "_open", lambda: opened),
        (cuda_cupti.discovery, "loaded_copies", lambda: (LIBRARY.access().cupti.path,)),
        (cuda_cupti.workload, "Workload", Workload),
        (cuda_work, "CupyWork", StandInWork),
        (cuda_work, "allocations", allocations),
        (cuda_work, "pooled_allocation", lambda: LIBRARY.free(LIBRARY.allocate(1 << 20))),
        (cuda_work, "cuda_python_kernels", cuda_python_kernels),
        (smoke_costs, "LAUNCHES", 100),
        (smoke_costs, "MANY", 500),
        *((module, "has", lambda name: name != "torch") for module in modules),
    ]
    for where, name, what in replaced:
        setattr(where, name, what)
    smoke_tools.run(mode, limit_s=110)


if __name__ == "__main__":
    main(sys.argv[1])
