"""The modes of the smoke test that look at the plugin alone, each run in a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smoke_tools import FACTS, account, check, has, of_types, profiled

LAUNCHES, MANY = 4_000, 50_000
"""Kernels of a session that is timed, and of a long one."""


def facts() -> None:
    """Say what there is: GPU, driver, libcupti, and what the plugin says of them."""
    from cuda_cupti.access import facts_of, open_cupti
    from cuda_cupti.discovery import loaded_copies
    from cuda_cupti.layouts import expected

    access = open_cupti()
    FACTS.update(facts_of(access), python=sys.version.split()[0], cores=os.cpu_count(), doubts=access.doubts)
    FACTS["devices"] = {index: one.properties() for index, one in access.devices.items()}
    with contextlib.suppress(OSError):
        FACTS["driver file"] = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    check("records have the published lengths", access.layout.differences(expected(access.cupti.version)), ())
    check("one libcupti in the process", len(loaded_copies()), 1)
    check("the plugin shows a GPU", bool(access.devices))
    with contextlib.suppress(ImportError):
        from cuda_cupti.doctor import doctor_lines

        FACTS["doctor"] = list(doctor_lines())


def base() -> None:
    """Time a launch without any profiler."""
    if has("cupy"):
        from cuda_work import CupyWork

        work = CupyWork()
        FACTS["launch_us"] = round(min(work.launch_us(LAUNCHES) for _ in range(3)), 3)


def cupy() -> None:
    """Profile a program whose right answer is known."""
    if not has("cupy"):
        return
    from cuda_work import CupyWork

    import devprof

    work, launched = CupyWork(), {}
    profiled(lambda: work.kernel(64))  # the first use of CUPTI in a process is slow
    prof = profiled(lambda: launched.update(work.everything(devprof.record_function)))
    trace, ledger = prof.trace, account(prof)
    kernels = of_types(trace, "CONCURRENT_KERNEL")
    FACTS.update(
        report=str(prof.report).splitlines(),
        events=dict(_names(trace)),
        metadata=trace.facts.get("plugin_metadata"),
    )
    check("kernels", len(kernels), sum(launched.values()))
    check(
        "nothing lost, nothing wrong",
        [ledger.lost, ledger.lost_unknown, ledger.errors, ledger.failures],
        [0, [], [], []],
    )
    check("nothing before its launch", ledger.notes["device work before its launch"], 0)
    check("no doubt about the clock", ledger.clock_doubts, [])
    _check_ranges(trace, kernels, launched)
    calls = of_types(trace, "CUDA_RUNTIME", "CUDA_DRIVER")
    ids = {int(trace.id[one]) for one in calls}
    check("every kernel has a call", sum(int(trace.id[one]) not in ids for one in kernels), 0)
    check("every kernel has an arrow", sum(not trace.flow_id[one] for one in kernels), 0)
    check("kernels are real", sum(trace.end_ns[one] <= trace.start_ns[one] for one in kernels), 0)
    threads = {trace.rows[trace.row[one]].id for one in calls}
    check("calls stand on their threads", threading.get_native_id() in threads and len(threads) == 2)
    check(
        "names are demangled", "void devprof_axpy<float>(float*, float, int)" in {trace.name_of(one) for one in kernels}
    )
    check("graph kernels name their graph", sum(bool(trace.item("graph id", one)) for one in kernels), 6)
    copies = [str(trace.name_of(one)) for one in of_types(trace, "GPU_MEMCPY", "GPU_MEMSET")]
    check(
        "copies",
        sorted(name.split()[0] + name.split()[1] for name in copies),
        ["MemcpyDtoH", "MemcpyHtoD", "Memset(Device)"],
    )
    if out := os.environ.get("OUT"):
        prof.export_chrome_trace(str(Path(out) / "cupy_trace.json.gz"))
    from devprof import rules

    broken = [text for text in map(str, rules.check(trace)) if not text.startswith("warning links.owned: 1 of")]
    check("the trace keeps the rules", broken[:5], [])


def _names(trace: Any) -> Counter[str]:
    from devprof.model import ActivityType

    return Counter(ActivityType(int(one)).name for one in trace.activity_type)


def _check_ranges(trace: Any, kernels: list[int], launched: dict[str, int]) -> None:
    ranges = {int(trace.id[one]): trace.name_of(one) for one in of_types(trace, "CPU_OP", "USER_ANNOTATION")}
    found = Counter(ranges.get(int(trace.linked[one]), "none") for one in kernels)
    expected = {name: n for name, n in launched.items() if n}
    check("kernels belong to their ranges", dict(found), expected)
    users = Counter(ranges.get(int(trace.linked_user[one]), "none") for one in kernels)
    check("kernels carry their user range", dict(users), expected)


def cuda_python() -> None:
    """Profile launches through the driver's API."""
    import devprof

    n = 50
    if has("cuda.bindings.driver"):
        from cuda_work import cuda_python_kernels as work
    else:
        return
    work(1, lambda i: contextlib.nullcontext())
    prof = profiled(lambda: work(n, lambda i: devprof.record_function(f"op {i}")))
    trace = prof.trace
    kernels = of_types(trace, "CONCURRENT_KERNEL")
    ranges = {int(trace.id[one]): trace.name_of(one) for one in of_types(trace, "USER_ANNOTATION")}
    check("kernels", len(kernels), n)
    check("each belongs to its op", sorted(ranges.get(int(trace.linked[one]), "") for one in kernels),
          sorted(f"op {i}" for i in range(n)))  # fmt: skip
    check("each has a call of the driver", len({int(trace.id[one]) for one in of_types(trace, "CUDA_DRIVER")}
                                               & {int(trace.id[one]) for one in kernels}), n)  # fmt: skip
    check("nothing lost", [account(prof).lost, account(prof).errors], [0, []])
    from cuda_cupti.workload import Workload

    own = Workload()
    own.launch("warm", 1)
    prof = profiled(lambda: (own.graph("devprof_node", 4), own.launch("devprof_name", 3), own.synchronize()))
    names = Counter(prof.trace.name_of(one) for one in of_types(prof.trace, "CONCURRENT_KERNEL"))
    check("names and graphs of the driver's own", dict(names), {"devprof_node": 4, "devprof_name": 3})


def memory() -> None:
    """Profile allocations of the device's memory, and of the host's that is pinned."""
    if not has("cupy"):
        return
    from cuda_work import allocations, pooled_allocation

    import devprof
    from devprof.analysis import memory_curve

    def curves(trace: Any) -> dict[str, Any]:
        return {device: curve.allocated_bytes.tolist() for device, curve in memory_curve(trace).items()}

    prof = profiled(lambda: allocations(devprof.record_function), profile_memory=True)
    mib = 1 << 20
    check("curves", curves(prof.trace), {"cuda:0": [mib, 3 * mib, 2 * mib, 0], "cpu:pinned": [mib, 0]})
    rows = {row.key: row for row in prof.key_averages()}
    taken = {name: (rows[name].device_memory_usage, rows[name].cpu_memory_usage) for name in ("takes", "gives")}
    check("each range has what it took", taken, {"takes": (3 * mib, mib), "gives": (-3 * mib, -mib)})
    check("nothing lost", [account(prof).lost, account(prof).rejected, account(prof).errors], [0, {}, []])
    prof = profiled(pooled_allocation, profile_memory=True)
    # a fact, no check: nobody has seen the records of a pool yet
    FACTS["of a pool"] = {
        device: [curve.allocated_bytes.tolist(), curve.reserved_bytes.tolist()]
        for device, curve in memory_curve(prof.trace).items()
    }


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

    def in_ranges() -> None:
        begun = time.perf_counter()
        for _ in range(n):
            with devprof.record_function("op"):
                work.kernel(1, 32)
        FACTS["launch_in_a_range_us"] = round((time.perf_counter() - begun) / n * 1e6, 3)
        work.synchronize()

    prof = profiled(in_ranges)
    check("all linked", account(prof).linked, n)
    with devprof.profile(activities=["cpu"], host="python"):
        begun = time.perf_counter()
        for _ in range(n):
            with devprof.record_function("op"):
                work.kernel(1, 32)
        FACTS["launch_in_a_range_without_cuda_us"] = round((time.perf_counter() - begun) / n * 1e6, 3)
        work.synchronize()
    begun = time.perf_counter()
    prof = profiled(lambda: work.launch_us(MANY), cpu=False)
    FACTS["session_of_many_kernels_s"] = round(time.perf_counter() - begun, 2)
    FACTS["timings_ns"] = dict(prof.report.timings_ns)
    check("many kernels", [len(of_types(prof.trace, "CONCURRENT_KERNEL")), account(prof).lost], [MANY + 1, 0])
    FACTS.update(_decoding_speed())


def _decoding_speed() -> dict[str, Any]:
    """Decode the buffers of a session a second time, with nothing else going on."""
    from cuda_cupti.decode import decode

    buffers, layout, _ = raw_buffers(lambda work: work.launch_us(MANY // 5))
    gc.collect()
    begun = time.perf_counter()
    n = sum(len(decode(one, layout, ctypes.string_at)) for one in buffers)
    took = time.perf_counter() - begun
    return {"decoded_records": n, "decoded_records_per_s": round(n / took)}


def raw_buffers(body: Callable[[Any], object]) -> tuple[list[bytes], Any, dict[str, str]]:
    """Return the bytes that CUPTI completed in a session, its layout, and the texts behind the pointers."""
    import cuda_cupti.collector as collector
    from cuda_work import CupyWork

    kept, texts, layouts = [], {}, []
    real = collector.decode

    def keeping(raw: memoryview, layout: Any, text_at: Any) -> Any:
        kept.append(bytes(raw))
        layouts.append(layout)

        def read(address: int) -> bytes:
            texts[str(address)] = text_at(address).decode("utf-8", "backslashreplace")
            return bytes(text_at(address))

        return real(raw, layout, read)

    work = CupyWork()
    collector.decode = keeping  # type: ignore[assignment]
    try:
        profiled(lambda: body(work), cpu=True)
    finally:
        collector.decode = real
    return kept, layouts[0], texts


def golden() -> None:
    """Write the buffers of a small program, as CUPTI completed them, with the texts that their pointers meant."""
    if not has("cupy"):
        return
    import devprof

    os.environ["DEVPROF_SYNC_EVENTS"] = "1"
    buffers, layout, texts = raw_buffers(lambda work: work.everything(devprof.record_function))
    FACTS.update(bytes=[len(one) for one in buffers], texts=len(texts))
    check("buffers came", bool(buffers))
    if out := os.environ.get("OUT"):
        about = {
            "version": layout.version,
            "strides": {int(kind): stride for kind, stride in layout.strides.items()},
            "bytes": [len(one) for one in buffers],
            "texts": texts,
        }
        (Path(out) / f"cupti_{layout.version}.bin").write_bytes(b"".join(buffers))
        (Path(out) / f"cupti_{layout.version}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
