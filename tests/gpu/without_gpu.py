"""Runs one mode of the smoke test on a stand-in for the library, to show that the script itself is right: nothing of CUDA.

python tests/gpu/without_gpu.py MODE
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import cuda_cupti.profiler
import cuda_work
import smoke_beside
import smoke_modes
import smoke_tools
from cuda_cupti.capture import Client
from cuda_cupti.profiler import Source
from cuda_work import Ranges
from stand_in import StandIn

LIBRARY = StandIn(devices=1)
AXPY = "_Z12devprof_axpyIfEvPT_S0_i"


class StandInWork:
    """What `cuda_work.CupyWork` does, as records of the stand-in's."""

    def kernel(self, blocks: int = 256, n: int = 1 << 20, stream: int = 7) -> None:
        LIBRARY.kernel(AXPY, stream=stream)

    def synchronize(self) -> None:
        LIBRARY.end_all()

    def everything(self, ranges: Ranges) -> dict[str, int]:
        with ranges("streams"):
            for i in range(100):
                self.kernel(stream=13 + i % 2)
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


def allocations(ranges: Ranges) -> None:
    with ranges("takes"):
        first, second = LIBRARY.allocate(1 << 20), LIBRARY.allocate(2 << 20)
        pinned = LIBRARY.allocate(1 << 20, kind=2)
    with ranges("gives"):
        for address in (first, second, pinned):
            LIBRARY.free(address)


def main(mode: str) -> None:
    """Run the mode in this process, as `smoke_tools.run` does."""
    client = Client(LIBRARY.access())
    replaced: list[tuple[Any, str, Any]] = [
        (cuda_cupti.profiler, "_source", lambda: Source(client, is_alone=lambda host: None)),
        (cuda_work, "CupyWork", StandInWork),
        (cuda_work, "allocations", allocations),
        (cuda_work, "pooled_allocation", lambda: LIBRARY.free(LIBRARY.allocate(1 << 20))),
        (smoke_modes, "LAUNCHES", 100),
        (smoke_modes, "MANY", 500),
        *((module, "has", lambda name: name == "cupy") for module in (smoke_modes, smoke_beside)),
    ]
    for where, name, what in replaced:
        setattr(where, name, what)
    smoke_tools.run(mode)


if __name__ == "__main__":
    main(sys.argv[1])
