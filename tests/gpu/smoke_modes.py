"""The modes of the smoke test that look at the plugin alone, each run in a process of its own."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from smoke_tools import FACTS, account, check, check_losses, has, of_types, profiled, subscription

LATE_NS = 300_000_000
"""How long the kernel runs that is in flight when a profile ends."""


def facts() -> None:
    """Say what there is: GPU, driver, libcupti, and what the plugin says of them."""
    from cuda_cupti.access import facts_of, open_cupti
    from cuda_cupti.capture import Client
    from cuda_cupti.discovery import loaded_copies
    from cuda_cupti.doctor import doctor_lines
    from cuda_cupti.layouts import expected

    access = open_cupti()
    FACTS.update(facts_of(access), python=sys.version.split()[0], cores=os.cpu_count(), doubts=access.doubts)
    FACTS["devices"] = {index: one.properties() for index, one in access.devices.items()}
    with contextlib.suppress(OSError):
        FACTS["driver file"] = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    check("records have the published lengths", access.layout.differences(expected(access.cupti.version)), ())
    check("one libcupti in the process", len(loaded_copies()), 1)
    check("the plugin shows a GPU", bool(access.devices))
    reading = Client(access).read_clock()
    FACTS["clock"] = {
        "cupti_after_host_ns": reading.cupti_ns - reading.before_ns,
        "reading_took_ns": reading.after_ns - reading.before_ns,
    }
    check("CUPTI's clock is the host's", reading.agrees)
    FACTS["doctor"] = list(doctor_lines())
    _subscribe_around_a_capture(access.cupti)


def _subscribe_around_a_capture(cupti: Any) -> None:
    """Note what a subscription for a moment is answered, and what becomes of a capture that one falls into.

    ``cupti_callbacks.h`` has `cuptiSubscribe` answer 39 also where another client has a profiling session; facts, no checks.
    """
    from cuda_cupti.workload import Workload

    def code() -> int:
        with subscription(cupti) as answer:
            return answer

    work, codes = Workload(), {"before a capture": code()}
    work.launch("devprof_warm", 1)
    work.synchronize()
    prof = profiled(
        lambda: (codes.update({"in a capture": code()}), work.launch("devprof_k", 2), work.synchronize()),
    )
    codes["after a capture"] = code()
    FACTS["cuptiSubscribe answers"] = codes
    FACTS["a capture with a subscription in it"] = {
        "kernels of 2": len(of_types(prof.trace, "CONCURRENT_KERNEL")),
        "failures": account(prof).failures,
        "errors": account(prof).errors,
    }
    after = profiled(lambda: (work.launch("devprof_k", 3), work.synchronize()))
    FACTS["kernels of 3 in the capture after it"] = len(of_types(after.trace, "CONCURRENT_KERNEL"))
    check("no subscription is left after captures", codes["after a capture"], codes["before a capture"])


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
    check_losses(prof)
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


def late() -> None:
    """Leave a profile while kernels run: they are in it whole, and in no other."""
    if not has("cupy"):
        return
    from cuda_work import CupyWork

    work, n, in_flight = CupyWork(), 20, []
    profiled(lambda: work.kernel(64))  # the first use of CUPTI in a process is slow
    begun = time.perf_counter()
    prof = profiled(lambda: in_flight.append(work.leave_running(LATE_NS, n)))
    FACTS["profile_s"] = round(time.perf_counter() - begun, 3)
    trace = prof.trace
    kernels = of_types(trace, "CONCURRENT_KERNEL")
    took_ns = [int(trace.end_ns[one] - trace.start_ns[one]) for one in kernels if trace.name_of(one) == "devprof_spin"]
    FACTS["late_kernel_ns"] = took_ns
    check("work was in flight when the profile ended", in_flight, [True])
    check("the late kernel is in the trace once", len(took_ns), 1)
    check("it has its whole duration", [LATE_NS * 0.99 < ns < LATE_NS * 1.5 for ns in took_ns], [True])
    check("the kernels behind it and beside it are in the trace", len(kernels), 1 + 2 * n)
    calls = {trace.name_of(one) for one in of_types(trace, "CUDA_RUNTIME", "CUDA_DRIVER")}
    check("the plugin's own waiting is not", [name for name in calls if "Synchronize" in name], [])
    check("nothing before its launch", account(prof).notes["device work before its launch"], 0)
    check_losses(prof)
    after = profiled(lambda: (work.kernel(64), work.synchronize()))
    check("the next profile has its own kernel alone", len(of_types(after.trace, "CONCURRENT_KERNEL")), 1)


def cuda_python() -> None:
    """Profile launches through the driver's API: the plugin's own workload's, and cuda-python's."""
    from cuda_cupti.workload import Workload

    own = Workload()
    own.launch("devprof_warm", 1)
    prof = profiled(lambda: (own.graph("devprof_node", 4), own.launch("devprof_name", 3), own.synchronize()))
    names = Counter(prof.trace.name_of(one) for one in of_types(prof.trace, "CONCURRENT_KERNEL"))
    check("names and graphs of the driver's own", dict(names), {"devprof_node": 4, "devprof_name": 3})
    if has("cuda.bindings.driver"):
        _cuda_python()


def _cuda_python(n: int = 50) -> None:
    from cuda_work import cuda_python_kernels as work

    import devprof

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
    check_losses(prof)


def memory() -> None:
    """Profile allocations of the device's memory, and of the host's that is pinned."""
    if not has("cupy"):
        return
    from cuda_work import allocations, pooled_allocation

    import devprof
    from devprof.analysis import memory_curve

    def curves(trace: Any) -> dict[str, Any]:
        return {device: curve.allocated_bytes.tolist() for device, curve in memory_curve(trace).items()}

    allocations(
        lambda name: contextlib.nullcontext()
    )  # what the first ones bring with them is not theirs, as a context
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
