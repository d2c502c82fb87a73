"""The modes of the smoke test in which the plugin meets others: torch, another subscriber, a fork, and the conformance kit."""

from __future__ import annotations

import os
import select
import signal
import warnings
from typing import Any

from smoke_tools import FACTS, account, check, has, of_types, profiled, subscription


def _torch_kernels(x: Any, n: int) -> int:
    """Launch n kernels under torch.profiler; return how many it saw."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        for _ in range(n):
            x.mul_(1.01)
        torch.cuda.synchronize()
    return sum(e.device_type == torch.autograd.DeviceType.CUDA and "elementwise" in e.name for e in prof.events())


def _our_kernels(x: Any, n: int) -> int:
    import torch

    def work() -> None:
        for _ in range(n):
            x.mul_(1.01)
        torch.cuda.synchronize()

    prof = profiled(work)
    FACTS.setdefault("ours", []).append(str(prof.report).splitlines()[:6])
    return len(of_types(prof.trace, "CONCURRENT_KERNEL"))


def beside_torch() -> None:
    """Take turns with torch.profiler in one process, and step aside while it records."""
    if not has("torch"):
        return
    import torch
    from cuda_cupti.discovery import loaded_copies

    os.environ["DEVPROF_DISABLE"] = "1"  # the image's torch may be one that the bridge does not know; here it is alone
    x = torch.ones(1 << 16, device="cuda")
    turns = [("torch", _torch_kernels), ("ours", _our_kernels)] * 2 + [("torch", _torch_kernels)]
    found = [(who, count(x, 20 + i)) for i, (who, count) in enumerate(turns)]
    check("taking turns", found, [(who, 20 + i) for i, (who, _) in enumerate(turns)])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        aside = profiled(lambda: (x.mul_(1.01), torch.cuda.synchronize()))
    failures = account(aside).failures
    FACTS["refusal beside torch"] = failures
    check("the plugin steps aside for Kineto", "Kineto" in " ".join(failures))
    check("Kineto keeps its kernel", sum("elementwise" in one.name for one in prof.events()
                                         if one.device_type == torch.autograd.DeviceType.CUDA), 1)  # fmt: skip
    check("one libcupti in the process", len(loaded_copies()), 1)
    FACTS["torch"] = torch.__version__
    _check_taking_over(x)
    _check_trace_of(prof)  # last: on a torch that devprof knows it may have to compile its bridge first


def _check_taking_over(x: Any) -> None:
    """Let torch.profiler begin inside of a capture: it has its kernels, and the next capture has its own."""
    seen: list[int] = []
    prof = profiled(lambda: (_kernel_and_wait(x), seen.append(_torch_kernels(x, 7)), _kernel_and_wait(x)))
    FACTS["taken over"] = [len(of_types(prof.trace, "CONCURRENT_KERNEL")), account(prof).errors]
    check("a torch profile inside of a capture has its kernels", seen, [7])
    check("the next capture has its own", _our_kernels(x, 9), 9)
    check("and torch the one after", _torch_kernels(x, 8), 8)


def _kernel_and_wait(x: Any) -> None:
    import torch

    x.mul_(1.01)
    torch.cuda.synchronize()


def _check_trace_of(prof: Any) -> None:
    """Read Kineto's profile back; on a torch that devprof does not know, that may be refused."""
    import devprof
    from devprof.model import ActivityType

    try:
        trace = devprof.trace_of(prof)
    except Exception as error:  # noqa: BLE001  # a fact about this torch
        FACTS["trace_of"] = repr(error)[:500]
        return
    check("trace_of gives Kineto's kernel", len(trace.of_type(ActivityType.CONCURRENT_KERNEL)), 1)


def conform() -> None:
    """Run the conformance kit on the real device."""
    import time

    import cuda_cupti.plugin
    from cuda_cupti.workload import Workload

    from devprof.testing.conformance import CHECKS, Bench, Device, Settings, State, Subject, run_checks

    begun = time.monotonic()
    settings = Settings(sessions=40, kernels=2000, drift_s=1.0, ops=500)
    # the first use of CUPTI in a process is slow, and no check is about that
    device = Device(Workload())
    device.launch()
    profiled(device.synchronize)
    from devprof.errors import UsageError
    from devprof.registry import unregister

    plugin: Any = cuda_cupti.plugin
    try:
        unregister("cuda")
    except UsageError:  # it is installed, and not registered from here
        plugin = "cuda"
    with Subject(plugin) as subject:
        bench = Bench(subject, device, settings=settings)
        findings = run_checks(CHECKS, lambda host: bench)
    FACTS["counts"] = {state.value: sum(one.state is state for one in findings) for state in State}
    FACTS["not held"] = [one.text[:700] for one in findings if one.state in (State.FAILED, State.UNDECIDED)]
    FACTS["skipped"] = [f"{one.check.number}: {one.reason}" for one in findings if one.state is State.SKIPPED]
    FACTS["kit_s"] = round(time.monotonic() - begun, 1)
    check(
        "the kit's checks", [one.check.number for one in findings if one.state in (State.FAILED, State.UNDECIDED)], []
    )


def refusals() -> None:
    """Have the plugin refused, and look that it leaves nothing behind."""
    from cuda_cupti.access import open_cupti
    from cuda_cupti.workload import Workload

    work = Workload()
    work.launch("warm", 1)
    cupti = open_cupti().cupti
    before = cupti.thread_id_type(), cupti.byte_attribute(5)
    prof = profiled(lambda: (work.launch("k", 2), work.synchronize()))
    check("kernels", len(of_types(prof.trace, "CONCURRENT_KERNEL")), 2)
    check("thread ids are as they were", cupti.thread_id_type(), before[0])
    check("buffers are cleared by CUPTI as before", cupti.byte_attribute(5), before[1])
    with subscription(cupti) as code:
        check("no subscription is left", code, 0)
        prof = profiled(lambda: (work.launch("k", 1), work.synchronize()))
        failures = account(prof).failures
        FACTS["refusal beside a subscriber"] = failures
        check("a subscriber is named", "Another profiler holds CUPTI" in " ".join(failures))
    prof = profiled(lambda: (work.launch("k", 3), work.synchronize()))
    check("kernels after the refusal", len(of_types(prof.trace, "CONCURRENT_KERNEL")), 3)
    _check_fork()


def _check_fork(patience_s: float = 4.0) -> None:
    """Ask for a session in a forked child."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        _say_refusal(writing)
    os.close(writing)  # so that reading ends where the child dies
    answered, _, _ = select.select([reading], [], [], patience_s)
    said = os.read(reading, 2000) if answered else b"no answer"
    os.kill(child, signal.SIGKILL)  # it has answered, or hangs
    os.waitpid(child, 0)
    os.close(reading)
    FACTS["a forked child says"] = said.decode("utf-8", "replace")
    check("a forked child is refused", b"forked" in said)


def _say_refusal(writing: int) -> None:
    """Write what a forked child is told, and end it."""
    from cuda_cupti.access import open_cupti

    said = "no refusal"
    try:
        open_cupti()
    except BaseException as error:  # noqa: BLE001
        said = str(error)
    try:
        os.write(writing, said.encode())
    finally:
        os._exit(0)
