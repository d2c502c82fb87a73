"""A backend without a tracing SDK gets device time per op from torch's own events: ranges, and called so."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

PROGRAM = """
import json, sys
import torch
from torch.profiler import profile, ProfilerActivity, record_function
import devprof
from devprof.torch.any_device import any_device
from openreg_sim.runtime import runtime

any_device("openreg")

def events_of(work):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        work()
    listed = prof.events()
    spans = [e for e in listed if e.name == "range between two events"]
    owners = {e.id: e.name for e in listed if str(e.device_type).endswith("CPU")}
    return prof, listed, spans, owners
"""


def outcome(fresh: Any, program: str) -> Any:
    done = run(fresh, program)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def run(fresh: Any, program: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return fresh(
            "-c", PROGRAM + program, folder=Path(folder), DEVPROF_BLOCK_PLUGINS="openreg", KINETO_LOG_LEVEL="99"
        )


def test_every_op_that_calls_no_other_has_one_span_on_its_stream_and_owns_it(fresh: Any) -> None:
    found = outcome(
        fresh,
        """
x = torch.ones(64, 64, device="openreg")
prof, listed, spans, owners = events_of(lambda: (x @ x, x.relu_()))
report = devprof.report_of(prof)
print(json.dumps({
    "owners": sorted(owners[s.linked_correlation_id] for s in spans),
    "own": [e.name for e in listed if e.kernels and e.name == "aten::matmul"],
    "device": sorted({(s.device_index, s.device_resource_id) for s in spans}),
    "linked": [report.ledgers["openreg-events"].linked, len(spans)],
    "total": [a.device_time_total for a in prof.key_averages() if a.key in ("aten::matmul", "aten::mm")],
}))
""",
    )
    assert set(found["owners"]) == {"aten::mm", "aten::relu_"}
    assert len(found["owners"]) == len(set(found["owners"])) == found["linked"][0] == found["linked"][1]
    assert found["own"] == []
    assert found["device"] == [[0, 0]]
    assert found["total"][0] == found["total"][1] > 0


def test_a_span_holds_the_kernel_that_the_device_really_ran(fresh: Any) -> None:
    found = outcome(
        fresh,
        """
x = torch.ones(512, 512, device="openreg")
runtime().device_synchronize()
runtime().forget_truth()
prof, listed, spans, owners = events_of(lambda: x @ x)
truth = runtime().ground_truth()
kernels = [int(t["end_ns"] - t["start_ns"]) for t in truth if runtime().name_of(int(t["name"])) == "mm_kernel"]
print(json.dumps({"kernels": kernels, "spans": [round(s.time_range.elapsed_us() * 1000) for s in spans]}))
""",
    )
    (kernel_ns,), (span_ns,) = found["kernels"], found["spans"]
    assert span_ns >= kernel_ns > 0


def test_user_ranges_devices_and_streams_are_kept_apart(fresh: Any) -> None:
    found = outcome(
        fresh,
        """
a, b = torch.ones(64, device="openreg:0"), torch.ones(64, device="openreg:1")
side = torch.openreg.Stream()
def work():
    with record_function("left"):
        a.add_(1)
    with torch.openreg.stream(side), record_function("side"):
        a.mul_(2)
    with torch.device("openreg:1"), record_function("right"):
        torch.openreg.set_device(1)
        b.add_(1)
        torch.openreg.set_device(0)
prof, listed, spans, owners = events_of(work)
ranges = [e for e in listed if e.name in ("left", "side", "right") and not str(e.device_type).endswith("CPU")]
print(json.dumps({
    "spans": sorted((s.device_index, s.device_resource_id, owners[s.linked_correlation_id]) for s in spans),
    "ranges": sorted((r.name, r.device_index, r.device_resource_id) for r in ranges),
}))
""",
    )
    side = next(stream for device, stream, name in found["spans"] if name == "aten::mul_")
    assert side != 0
    assert found["spans"] == sorted([[0, 0, "aten::add_"], [0, side, "aten::mul_"], [1, 0, "aten::add_"]])
    assert found["ranges"] == [["left", 0, 0], ["right", 1, 0], ["side", 0, side]]


def test_a_backend_that_refuses_events_is_named_and_the_profile_is_whole(fresh: Any) -> None:
    found = outcome(
        fresh,
        """
class NoTiming:
    def __init__(self, device=None, enable_timing=False):
        self.base = str(device) != "openreg"
    def record(self, stream):
        if not self.base:
            raise RuntimeError("this backend has no timing")
    def synchronize(self): pass
x = torch.ones(8, device="openreg")
torch.Event = NoTiming
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    prof, listed, spans, owners = events_of(lambda: x.add_(1))
print(json.dumps({
    "spans": len(spans), "ops": [e.name for e in listed if e.name == "aten::add_"],
    "errors": devprof.report_of(prof).ledgers["openreg-events"].errors,
}))
""",
    )
    assert found == {"spans": 0, "ops": ["aten::add_"], "errors": ["this backend has no timing"]}


def test_a_second_call_for_a_device_is_refused_by_name(fresh: Any) -> None:
    done = run(fresh, 'any_device("openreg")')
    assert done.returncode == 1
    assert "a plugin named 'openreg-events' is registered already" in done.stderr
