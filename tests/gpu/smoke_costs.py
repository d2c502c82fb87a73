"""The modes of the smoke test that measure, each run in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile
import time
from typing import Any

from smoke_tools import FACTS, account, check, has, of_types, profiled

LAUNCHES, MANY = 4_000, 50_000
"""Kernels of a session that is timed, and of a long one."""


def base() -> None:
    """Time a launch without any profiler."""
    if has("cupy"):
        from cuda_work import CupyWork

        work = CupyWork()
        FACTS["launch_us"] = round(min(work.launch_us(LAUNCHES) for _ in range(3)), 3)


def kineto_cost() -> None:
    """Time a launch under torch.profiler, for comparison."""
    if not all([has("torch"), has("cupy")]):
        return
    import torch
    from cuda_work import CupyWork
    from torch.profiler import ProfilerActivity, profile

    torch.zeros(1, device="cuda")
    work, times = CupyWork(), []
    for _ in range(4):  # the first is slow, as CUPTI's first use is
        with profile(activities=[ProfilerActivity.CUDA]):
            times.append(work.launch_us(LAUNCHES))
    FACTS.update(launch_us=round(min(times), 3), torch=torch.__version__)


def native() -> None:
    """Build what handles CUPTI's buffers, where there is a compiler, and profile with it."""
    if not has("cupy"):
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DEVPROF_CACHE"] = folder
        from cuda_cupti.build_spec import CUPTI

        from devprof.errors import BuildError
        from devprof.native import build

        try:
            build(CUPTI)
        except BuildError as error:
            FACTS["not built"] = str(error)[:300]
            return
        from cuda_cupti.native_exchange import NativeExchange, new_exchange

        check("the native exchange is taken", type(new_exchange()), NativeExchange)
        FACTS["launch_us"] = _launch_us()


def _launch_us() -> float:
    """Return what a launch takes under the plugin, at best."""
    from cuda_work import CupyWork

    work, n, times = CupyWork(), LAUNCHES, []
    profiled(lambda: work.launch_us(10))
    for cpu in (False, True):
        for _ in range(3):
            prof = profiled(lambda: times.append(work.launch_us(n)), cpu=cpu)
            check(
                f"kernels, cpu={cpu}", [len(of_types(prof.trace, "CONCURRENT_KERNEL")), account(prof).lost], [n + 1, 0]
            )
    return round(min(times), 3)


def cost() -> None:
    """Time a launch under the plugin, the end of a session, and the decoding."""
    if not has("cupy"):
        return
    from cuda_work import CupyWork

    import devprof

    FACTS["launch_us"] = _launch_us()
    work, n = CupyWork(), LAUNCHES

    def in_ranges(fact: str) -> None:
        begun = time.perf_counter()
        for _ in range(n):
            with devprof.record_function("op"):
                work.kernel(1, 32)
        FACTS[fact] = round((time.perf_counter() - begun) / n * 1e6, 3)
        work.synchronize()

    prof = profiled(lambda: in_ranges("launch_in_a_range_us"))
    check("all linked", account(prof).linked, n)
    with devprof.profile(activities=["cpu"], host="python"):
        in_ranges("launch_in_a_range_without_cuda_us")
    begun = time.perf_counter()
    prof = profiled(lambda: work.launch_us(MANY), cpu=False)
    FACTS["session_of_many_kernels_s"] = round(time.perf_counter() - begun, 2)
    FACTS["timings_ns"] = dict(prof.report.timings_ns)
    check("many kernels", [len(of_types(prof.trace, "CONCURRENT_KERNEL")), account(prof).lost], [MANY + 1, 0])
    FACTS.update(_decoding_speed())


def _decoding_speed() -> dict[str, Any]:
    """Decode the buffers of a session a second time, with nothing else going on."""
    from cuda_cupti.decode import decode
    from cuda_work import CupyWork
    from smoke_golden import recorded

    work = CupyWork()
    again = recorded(lambda: work.launch_us(MANY // 5))
    gc.collect()
    begun = time.perf_counter()
    n = sum(len(decode(one, again.layout, ctypes.string_at)) for one in again.buffers)
    took = time.perf_counter() - begun
    return {"decoded_records": n, "decoded_records_per_s": round(n / took)}
