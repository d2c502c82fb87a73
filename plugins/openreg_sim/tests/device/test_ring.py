"""The ring between the native device and the runtime: what goes in, and that nothing gets lost unnoticed."""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from openreg_sim.activity import ActivityKind, ExternalCorrelationKind
from openreg_sim.build_spec import openreg_build
from openreg_sim.ring import RING_DTYPE, CallKind

from devprof.native.facts import compiler

ALL_KINDS = sum(kind.bit for kind in ActivityKind)


class Tap:
    """Takes the ring's records instead of the runtime."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def take(self) -> np.ndarray[Any, Any]:
        pending = self.library.orRingPending()
        records = np.zeros(pending, RING_DTYPE)
        taken = self.library.orRingDrain(records.ctypes.data, pending)
        return records[:taken]


@pytest.fixture
def tap(library: Any) -> Iterator[Tap]:
    """The ring, empty, and with nobody else who drains it; calls that would wait are for other tests."""
    from openreg_sim.runtime import runtime

    runtime().drain()
    yield Tap(library)
    library.orSetRingCapacity(65536)
    runtime().drain()


def test_record_has_the_layout_that_both_sides_agreed_on(tap: Tap) -> None:
    """Every field of a launch arrives in its place."""
    x = torch.ones(2, 3, device="openreg:1")
    stream = torch.Stream(device="openreg:1")
    tap.take()
    before_ns = time.time_ns()
    with stream:
        x.exp()
    after_ns = time.time_ns()
    (record,) = tap.take()
    assert tap.library.orRecordSize() == RING_DTYPE.itemsize == 80
    assert before_ns <= record["host_start_ns"] <= record["host_end_ns"] <= after_ns
    assert {
        name: int(record[name]) for name in ("thread_id", "kind", "device", "stream", "peer", "bytes", "event")
    } == {
        "thread_id": threading.get_native_id(),
        "kind": CallKind.LAUNCH,
        "device": 1,
        "stream": stream.stream_id,
        "peer": -1,
        "bytes": 0,
        "event": 0,
    }
    assert (int(record["op_id"]), int(record["user_id"]), record["pad"].tolist()) == (0, 0, [0] * 6)


def test_names_and_signatures_can_be_looked_up(tap: Tap) -> None:
    """A launch names its op, and the dtypes and shapes of its tensor arguments, lists included."""
    from openreg_sim.device import installed

    link = installed.link()
    x, y = torch.ones(2, 3, device="openreg"), torch.ones(3, 4, dtype=torch.float32, device="openreg")
    ids = torch.ones(2, 3, dtype=torch.int64, device="openreg")
    tap.take()
    for call in (
        lambda: x @ y,
        lambda: torch.cat([x, y[:, :3]]),
        lambda: x * x,
        lambda: x + ids,
        lambda: x.bool().any(),
    ):
        call()
    found = [(link.op_name(int(r["name"])), link.signature(int(r["signature"]))) for r in tap.take()]
    assert found == [
        ("aten::mm", (("float32", (2, 3)), ("float32", (3, 4)))),
        ("aten::cat", (("float32", (2, 3)), ("float32", (3, 3)))),
        ("aten::mul", (("float32", (2, 3)), ("float32", (2, 3)))),
        ("aten::add", (("float32", (2, 3)), ("int64", (2, 3)))),
        ("aten::copy_", (("bool", (2, 3)), ("float32", (2, 3)))),
        ("aten::any", (("bool", (2, 3)),)),
    ]
    assert (link.op_name(1 << 30), link.signature(0)) == ("unknown", ())


def test_equal_calls_share_their_numbers(tap: Tap) -> None:
    """Name and signature are interned, from any thread; another shape is another signature."""

    def launch(rows: int) -> None:
        torch.ones(rows, 3, device="openreg").exp_()

    launch(2)
    thread = threading.Thread(target=launch, args=(2,))
    thread.start()
    thread.join()
    launch(4)
    exps = [r for r in tap.take() if tap.library.orOpName(int(r["name"])) == b"aten::exp_"]
    assert len({int(r["name"]) for r in exps}) == 1
    first, second, third = (int(r["signature"]) for r in exps)
    assert first == second != third


def test_views_are_no_launches(tap: Tap) -> None:
    """What only looks at memory in another way is no work for the device."""
    x = torch.arange(12.0, device="openreg").reshape(3, 4)
    tap.take()
    views = [x.t(), x[1], x[:, 1:3], x.view(4, 3), x.unsqueeze(0), x.expand(2, 3, 4), x.detach(), *x.split(1), x.real]
    views += [x.permute(1, 0), x.unfold(0, 2, 1), x.diagonal(), x.reshape(2, 6), x.as_strided((2,), (1,)), x.squeeze()]
    x.t_()
    x.unsqueeze_(0)
    torch.empty(5, device="openreg")
    assert x.size() == (1, 4, 3)
    assert x.is_contiguous() is False
    assert len(views) == 17
    assert tap.take().tolist() == []


def test_fills_with_zero_are_sets_and_other_fills_are_kernels(tap: Tap) -> None:
    """`zero_` is a memset of its bytes, unless it skips elements."""
    x = torch.empty(4, 4, device="openreg")
    tap.take()
    x.zero_()
    x[:, 0].zero_()
    x.fill_(1)
    records = tap.take()
    assert records["kind"].tolist() == [CallKind.MEMSET, CallKind.LAUNCH, CallKind.LAUNCH]
    assert records["bytes"].tolist() == [64, 0, 0]


def test_failing_operator_leaves_no_launch(tap: Tap) -> None:
    """An op that raises has done nothing on the device."""
    x = torch.ones(2, 3, device="openreg")
    tap.take()
    with pytest.raises(RuntimeError):
        x @ x
    assert len(tap.take()) == 0


def test_native_events_are_queued_with_their_stream(tap: Tap) -> None:
    """Events made through the C interface are recorded and destroyed in the ring's order."""
    event = tap.library.orEventCreate()
    tap.library.orEventRecord(event, 1, 0)
    tap.library.orEventDestroy(event)
    records = tap.take()
    assert records["kind"].tolist() == [CallKind.EVENT_RECORD, CallKind.EVENT_DESTROY]
    assert records["event"].tolist() == [event, event]
    assert int(records["device"][0]) == 1
    assert tap.library.orEventCreate() == event + 1


def test_launches_carry_the_ids_of_their_thread(tap: Tap) -> None:
    """The innermost op and user id at the call; none when tracing is off; other threads have their own."""
    library = tap.library
    x = torch.ones(2, device="openreg")
    library.orActivityEnableTracing(ALL_KINDS)
    tap.take()
    try:
        x.exp()
        library.orTracerPush(0, 5)
        library.orTracerPush(0, 2**62)
        library.orTracerPush(1, 7)
        x.exp()
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
        library.orTracerPop(0)
        x.exp()
        library.orTracerPop(0)
        library.orTracerPop(1)
        x.exp()
    finally:
        library.orActivityDisableTracing(ALL_KINDS)
    x.exp()
    records = tap.take()
    assert list(zip(records["op_id"].tolist(), records["user_id"].tolist(), strict=True)) == [
        (0, 0), (2**62, 7), (0, 0), (5, 7), (0, 0), (0, 0),
    ]  # fmt: skip


def test_stacks_tolerate_missing_and_surplus_pops(library: Any) -> None:
    """A pop without a push is counted; pushes that were left behind are gone at the next enabling."""
    library.orTracerPush(0, 1)
    assert library.orTracerTop(0) == 0
    library.orActivityEnableTracing(ALL_KINDS)
    library.orTracerPop(0)
    library.orTracerPop(1)
    library.orTracerPush(0, 3)
    library.orActivityEnableTracing(ALL_KINDS)
    assert (library.orTracerUnbalancedPops(), library.orTracerTop(0)) == (2, 3)
    library.orActivityDisableTracing(ALL_KINDS)
    library.orTracerPop(0)
    assert library.orTracerTop(0) == 0
    library.orActivityEnableTracing(ALL_KINDS)
    assert (library.orTracerUnbalancedPops(), library.orTracerTop(0)) == (0, 0)
    library.orActivityDisableTracing(ALL_KINDS)


def test_deep_stacks_keep_their_depth(library: Any) -> None:
    """Beyond what a stack can hold, ids are unknown but the depth stays right."""
    library.orActivityEnableTracing(ALL_KINDS)
    for number in range(1, 2001):
        library.orTracerPush(1, number)
    assert library.orTracerTop(1) == 512
    for _ in range(1999):
        library.orTracerPop(1)
    assert (library.orTracerTop(1), library.orTracerUnbalancedPops()) == (1, 0)
    library.orActivityDisableTracing(ALL_KINDS)


def test_cupti_like_names_are_the_same_stacks(library: Any) -> None:
    """`orActivityPush/PopExternalCorrelationId` return a status, and the id that was popped."""
    last = ctypes.c_uint64(9)
    library.orActivityEnableTracing(ALL_KINDS)
    assert library.orActivityPushExternalCorrelationId(1, 11) == 0
    assert library.orTracerTop(1) == 11
    assert (library.orActivityPopExternalCorrelationId(1, ctypes.byref(last)), last.value) == (0, 11)
    assert (library.orActivityPopExternalCorrelationId(1, ctypes.byref(last)), last.value) == (1, 0)
    assert library.orActivityPushExternalCorrelationId(9, 1) == 1
    library.orActivityDisableTracing(ALL_KINDS)


def test_ids_are_kept_while_any_kind_is_enabled(library: Any) -> None:
    """Enabling another kind keeps the stacks; the last kind to go ends them; bits of no kind mean nothing."""
    kernel, runtime = ActivityKind.KERNEL.bit, ActivityKind.RUNTIME.bit
    try:
        library.orActivityEnableTracing(~ALL_KINDS & 0xFFFFFFFF)
        assert library.orActivityPushExternalCorrelationId(0, 1) == 1
        library.orActivityEnableTracing(kernel)
        assert library.orActivityPushExternalCorrelationId(0, 2) == 0
        library.orActivityEnableTracing(runtime)
        library.orActivityDisableTracing(kernel)
        assert library.orTracerTop(0) == 2
        library.orActivityDisableTracing(runtime)
        assert (library.orActivityPushExternalCorrelationId(0, 3), library.orTracerTop(0)) == (1, 0)
        library.orActivityEnableTracing(kernel)
        assert library.orTracerTop(0) == 0
    finally:
        library.orActivityDisableTracing(ALL_KINDS)


CLIENT = """
#include "openreg_activity.h"

int kinds[] = {%s};
typedef char all_kinds_are_the_same[OR_ACTIVITY_KIND_ALL == %d ? 1 : -1];

int client(uint32_t kind, uint64_t id) {
  uint64_t last = 0;
  orActivityEnableTracing(OR_ACTIVITY_KIND_ALL);
  if (orActivityPushExternalCorrelationId(kind, id) != 0) return 1;
  if (orActivityPopExternalCorrelationId(kind, &last) != 0 || last != id) return 2;
  orActivityDisableTracing(OR_ACTIVITY_KIND_ALL);
  return orActivityPopExternalCorrelationId(kind, 0) == 1 ? 0 : 3;
}
"""


def test_header_is_c_and_names_what_the_library_exports(library: Any, tmp_path: Path) -> None:
    """A client in C99 compiles against it, links with the library, and sees Python's values."""
    names = [f"OR_ACTIVITY_KIND_{kind.name}" for kind in ActivityKind]
    names += [f"OR_EXTERNAL_CORRELATION_{kind.name}" for kind in ExternalCorrelationKind]
    source, made = tmp_path / "client.c", tmp_path / "client.so"
    source.write_text(CLIENT % (", ".join(names), ALL_KINDS))
    csrc = openreg_build().sources[0].parent
    flags = ["-x", "c", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{csrc}"]
    tail = ["-x", "none", library._name, "-o", str(made)]
    subprocess.run([*(compiler() or ()), *flags, str(source), *tail], check=True, timeout=60)
    client = ctypes.CDLL(str(made))
    values = [*(kind.bit for kind in ActivityKind), *ExternalCorrelationKind]
    assert list((ctypes.c_int * len(names)).in_dll(client, "kinds")) == values
    assert client.client(ctypes.c_uint32(1), ctypes.c_uint64(2**62)) == 0


def test_full_ring_is_drained_by_the_thread_that_filled_it(library: Any, calls: Any) -> None:
    """With a small ring every call still reaches the runtime, in order, from several threads."""
    x = torch.ones(4, device="openreg")
    calls.clear()
    dropped = library.orRingDropped()
    library.orSetRingCapacity(7)
    try:
        threads = [threading.Thread(target=lambda: [x.exp() for _ in range(200)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        library.orSetRingCapacity(65536)
    rows = calls.rows("LAUNCH")
    assert (len(rows), library.orRingDropped()) == (600, dropped)
    for thread_id in set(rows["thread_id"].tolist()):
        own = rows[rows["thread_id"] == thread_id]["host_start_ns"]
        assert len(own) == 200
        assert bool((np.diff(own) > 0).all())


def test_ring_that_nobody_drains_drops_and_counts(run_script: Any) -> None:
    """After the callbacks are gone the ring fills, the surplus is counted, and events are still destroyed."""
    done = run_script(
        "import torch\n"
        "from openreg_sim.device import native\n"
        "x = torch.ones(2, device='openreg')\n"
        "event = torch.Event('openreg'); event.record()\n"
        "library = native()\n"
        "library.orShutdown(); library.orSetRingCapacity(10)\n"
        "for _ in range(30): x.exp()\n"
        "before = library.orRingPending()\n"
        "del event\n"
        "print(before, library.orRingPending(), library.orRingDropped() >= 20)\n"
        "torch.openreg.synchronize(); torch.accelerator.synchronize()\n"
    )
    assert (done.stdout, done.returncode) == ("10 11 True\n", 0), done.stderr


def test_forked_child_starts_with_an_empty_ring(tap: Tap) -> None:
    """The parent's calls stay the parent's, and the child's device works."""
    x = torch.ones(4, device="openreg")
    x.exp()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        inherited = tap.library.orRingPending()
        y = (x + 1).exp_()
        own = {int(record["thread_id"]) == os.getpid() for record in tap.take()}
        os.write(write, f"{inherited} {own} {y.shape}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as answers:
        assert answers.read() == "0 {True} torch.Size([4])"
    assert len(tap.take()) >= 1


def test_errors_of_the_runtime_reach_the_caller(calls: Any) -> None:
    """A fault of the simulated device is an error of the call that waits, with the runtime's message."""
    from openreg_sim.runtime import Call, FailCall, runtime

    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    runtime().inject(FailCall(1, Call.STREAM_SYNCHRONIZE))
    try:
        with pytest.raises(RuntimeError, match="openreg: orStreamSynchronize"):
            x.sum().item()
    finally:
        runtime().clear_faults()
    assert x.sum().item() == 4.0
