"""Which features of CUDA's traces a plugin's traces have."""

from __future__ import annotations

from contextlib import suppress

from devprof.host import record_function
from devprof.model import ActivityType
from devprof.testing.conformance.bench import Bench, Capture

__all__ = ["features_of"]

_KINDS = {
    "kernels": (ActivityType.CONCURRENT_KERNEL,),
    "copies": (ActivityType.GPU_MEMCPY,),
    "sets": (ActivityType.GPU_MEMSET,),
    "runtime calls": (ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.CUDA_RUNTIME),
    "driver calls": (ActivityType.PRIVATEUSE1_DRIVER, ActivityType.CUDA_DRIVER),
    "ranges on the device": (ActivityType.GPU_USER_ANNOTATION,),
}
_CLAIMED = {"waits": ActivityType.CUDA_SYNC, "overhead": ActivityType.OVERHEAD, "counters": ActivityType.MTIA_COUNTERS}


def features_of(bench: Bench) -> dict[str, bool]:
    """Profile everything that the workload can do, and say what is in the trace.

    Returns:
        By feature whether it is there; empty where the session failed.
    """
    if not bench.device or bench.subject.profiler is None:
        return {}
    try:
        bench.begin("features")
        capture = bench.session(lambda capture: _everything(bench), profile_memory=True)
        return _present(bench, capture)
    except Exception:  # noqa: BLE001 - the checks have said what is wrong
        return {}


def _everything(bench: Bench) -> None:
    with record_function("range"):
        bench.launch(2)
        for method in ("copy", "set"):
            if bench.device.has(method):
                bench.in_op(method, lambda method=method: bench.device.call(method, 4096))  # type: ignore[misc]
        if bench.device.has("allocate"):
            bench.in_op("memory", lambda: bench.device.call("free", bench.device.call("allocate", 4096)))
    for place in ("device", "stream"):
        if bench.device.fact(f"{place}s", 1) > 1:
            with suppress(Exception):
                bench.device.launch(1, device=int(place == "device"), stream=int(place == "stream"))
    bench.device.synchronize()


def _present(bench: Bench, capture: Capture) -> dict[str, bool]:
    trace, seen = capture.trace, capture.seen
    work = capture.work()
    found = {name: bool(len(trace.of_type(*kinds))) for name, kinds in _KINDS.items()}
    found |= {name: bench.claims(kind) for name, kind in _CLAIMED.items()}
    keys = {key for event in work for key in trace.items_of(event)}
    return found | {
        "device time of ops": any(trace.linked[event] for event in work),
        "arrows from launch to work": any(trace.flow_id[event] for event in work),
        "several devices": len({one.device for one in seen.work}) > 1,
        "several streams": len({(one.device, one.resource) for one in seen.work}) > 1,
        "named rows": bool(seen.devices or seen.said.get("get_device_infos")),
        "device properties": bool(seen.said.get("get_device_properties")),
        "grid and block": {"grid", "block"} <= keys,
        "bytes of copies": "bytes" in keys,
        "device memory": bool(seen.memory or seen.records(ActivityType.CPU_INSTANT_EVENT)),
        "a measured clock": bool(capture.ledger.clock),
        "stubs for the legacy profiler": bench.subject.stubs is not None,
    }
