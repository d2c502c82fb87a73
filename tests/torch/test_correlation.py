"""Which op and which user range a launch belongs to: read from Python, from C on the op's thread, or told by pushes."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import threading
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
import toyland
from torch.profiler import record_function
from toyland import Join, Runtime, profile

from devprof import correlation
from devprof.contract import CorrelationAccess, NativeCorrelation
from devprof.native import include_dir
from devprof.native.facts import compiler
from devprof.torch.bridge import bridge

VENDOR = r"""
#include <stdatomic.h>
#include "devprof/correlation.h"

/* A vendor's runtime: mirrors pushes and pops, and can read devprof's table at a launch. */
#define SLOTS 100000
static struct { uint32_t push, kind; uint64_t id, op, user; } log_[SLOTS];
static atomic_int n_;
static const devprof_correlation_api* api_;

static void note(uint32_t push, uint32_t kind, uint64_t id) {
  int i = atomic_fetch_add(&n_, 1);
  if (i < SLOTS) {
    log_[i].push = push;
    log_[i].kind = kind;
    log_[i].id = id;
    log_[i].op = api_ ? api_->current_op() : 0;
    log_[i].user = api_ ? api_->current_user() : 0;
  }
}

__attribute__((visibility("default"))) void vendor_push(uint32_t kind, uint64_t id) { note(1, kind, id); }
__attribute__((visibility("default"))) void vendor_pop(uint32_t kind) { note(0, kind, 0); }
__attribute__((visibility("default"))) int vendor_use(const devprof_correlation_api* api) {
  if (api->version != DEVPROF_CORRELATION_VERSION || api->size < sizeof(*api)) return -1;
  api_ = api;
  return 0;
}
__attribute__((visibility("default"))) uint64_t vendor_session(void) { return api_->session(); }
__attribute__((visibility("default"))) uint64_t vendor_op(void) { return api_->current_op(); }
__attribute__((visibility("default"))) uint64_t vendor_user(void) { return api_->current_user(); }
__attribute__((visibility("default"))) int vendor_take(uint64_t out[][5], int capacity) {
  int n = atomic_exchange(&n_, 0);
  n = n < capacity ? n : capacity;
  for (int i = 0; i < n; ++i) {
    out[i][0] = log_[i].push; out[i][1] = log_[i].kind; out[i][2] = log_[i].id;
    out[i][3] = log_[i].op; out[i][4] = log_[i].user;
  }
  return n;
}
"""


class Vendor:
    """The C library above, loaded."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        for name in ("vendor_session", "vendor_op", "vendor_user"):
            getattr(library, name).restype = ctypes.c_uint64
        library.vendor_use.argtypes = [ctypes.c_void_p]

    def native(self) -> NativeCorrelation:
        push, pop = (
            ctypes.cast(getattr(self.library, f"vendor_{name}"), ctypes.c_void_p).value for name in ("push", "pop")
        )
        assert push
        assert pop
        return NativeCorrelation(push, pop)

    def take(self) -> list[tuple[int, int, int, int, int]]:
        """Return what was noted: (1 for a push, kind, id, op id read then, user id read then)."""
        out = np.zeros((100_000, 5), dtype=np.uint64)
        n = self.library.vendor_take(ctypes.c_void_p(out.ctypes.data), len(out))
        return [tuple(row) for row in out[:n].tolist()]


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Vendor:
    source = tmp_path_factory.mktemp("vendor") / "vendor.c"
    source.write_text(VENDOR)
    library = source.with_suffix(".so")
    flags = ["-x", "c", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{include_dir()}"]
    subprocess.run([*compiler(), *flags, str(source), "-o", str(library)], check=True, timeout=60)
    return Vendor(ctypes.CDLL(str(library)))


def op_ids(prof: Any, name: str) -> list[int]:
    return [event.id for event in prof.events() if event.name == name]


def test_a_launch_reads_the_innermost_op_and_the_innermost_range(join: Join) -> None:
    runtime = Runtime()
    join(script=runtime.script)
    seen: dict[str, correlation.Correlation] = {}

    def note(name: str) -> Any:
        return lambda: seen.__setitem__(name, correlation.current())

    def nested() -> None:
        seen["before"] = correlation.current()
        toyland.run_in_op(note("inner"))
        seen["after"] = correlation.current()

    with profile() as prof:
        seen["outside"] = correlation.current()
        with record_function("outer"):
            seen["outer range"] = correlation.current()
            with record_function("inner"):
                toyland.run_in_op(nested)
            seen["outer range again"] = correlation.current()
        toyland.run_in_op(note("no range"))
    outer_op, inner_op, last_op = op_ids(prof, "toy::run")
    (outer,), (inner,) = op_ids(prof, "outer"), op_ids(prof, "inner")
    assert seen == {
        "outside": (0, 0),
        "outer range": (0, outer),
        "before": (outer_op, inner),
        "inner": (inner_op, inner),
        "after": (outer_op, inner),
        "outer range again": (0, outer),
        "no range": (last_op, 0),
    }


def test_ids_are_none_when_nothing_records(join: Join) -> None:
    join()
    with profile():
        pass
    with record_function("range"):
        assert correlation.current() == (0, 0)
    assert correlation.depths() == (0, 0)


def test_a_vendors_library_reads_the_same_ids_in_c_on_the_ops_thread(join: Join, vendor: Vendor) -> None:
    plugin = join()
    read: list[tuple[int, int]] = []

    def launch() -> None:
        assert vendor.library.vendor_use(plugin.sessions[-1].config.correlation_api) == 0
        read.append((vendor.library.vendor_op(), vendor.library.vendor_user()))
        assert correlation.current() == read[-1]
        assert vendor.library.vendor_session() > 0

    with profile() as prof, record_function("range"):
        toyland.run_in_op(launch)
    assert read == [(*op_ids(prof, "toy::run"), *op_ids(prof, "range"))]
    assert vendor.library.vendor_session() == 0
    assert (vendor.library.vendor_op(), vendor.library.vendor_user()) == (0, 0)


def test_native_pushes_reach_the_vendor_on_the_ops_thread_in_order(join: Join, vendor: Vendor) -> None:
    plugin = join(correlation=CorrelationAccess.NATIVE, methods={"native_correlation": vendor.native})
    with profile():
        assert vendor.library.vendor_use(plugin.sessions[-1].config.correlation_api) == 0
        vendor.take()
        with record_function("range"):
            toyland.run_in_op(lambda: toyland.run_in_op(lambda: None))
        noted = vendor.take()
    ranges = [row for row in noted if row[1] == 1]
    assert [row[0] for row in ranges] == [1, 0]
    (user,) = {row[2] for row in ranges if row[0]}
    stack: list[int] = []
    for push, kind, pushed, op, innermost_user in noted:
        if kind == 0 and push:
            stack.append(pushed)
            assert (op, innermost_user) == (pushed, user)
        elif kind == 0:
            stack.pop()
            assert op == (stack[-1] if stack else 0)
    assert stack == []


def test_a_vendor_hears_of_nothing_once_its_session_is_over(join: Join, vendor: Vendor) -> None:
    join(correlation=CorrelationAccess.NATIVE, methods={"native_correlation": vendor.native})
    with profile():
        torch.ones(2) + 1
    assert vendor.take()
    torch.ones(2) + 1
    assert vendor.take() == []


def test_pushes_in_python_are_balanced_and_name_every_op(join: Join) -> None:
    plugin = join(correlation=CorrelationAccess.PYTHON)
    with profile() as prof:
        for _ in range(3):
            with record_function("range"):
                torch.ones(2) + 1
    ops = [event.id for event in prof.events() if event.name != "range"]
    assert [one for one in plugin.pushed if one] == sorted(ops)
    assert Counter(plugin.pushed)[0] == len(ops)
    depth = np.cumsum([1 if one else -1 for one in plugin.pushed])
    assert depth.min() >= 0
    assert depth[-1] == 0
    assert [one for one in plugin.pushed_user if one] == op_ids(prof, "range")
    assert plugin.pushed_user.count(0) == 3


def test_pushes_in_python_do_not_keep_old_sessions_alive(join: Join) -> None:
    """Native code holds a callback's address for ever; the callback must not hold the session for as long."""
    plugin = join(correlation=CorrelationAccess.PYTHON)
    sessions = []
    for _ in range(3):
        with profile():
            torch.ones(2) + 1
        sessions.append(weakref.ref(plugin.sessions.pop()))
    gc.collect()
    assert [ref() for ref in sessions] == [None] * 3
    assert len(bridge()._python_mirrors) <= 2


def test_two_plugins_hear_of_the_same_pushes(join: Join, vendor: Vendor) -> None:
    native = join(correlation=CorrelationAccess.NATIVE, methods={"native_correlation": vendor.native})
    python = join(correlation=CorrelationAccess.PYTHON)
    with profile():
        vendor.take()
        torch.ones(2) + 1
        noted = vendor.take()
    assert [one for one in python.pushed if one] == [row[2] for row in noted if row[0]]
    assert native.pushed == []


def test_a_profile_that_ends_inside_a_range_leaves_no_stale_id_behind(join: Join) -> None:
    join()
    prof = profile()
    prof.start()
    stale = record_function("left open")
    stale.__enter__()
    assert correlation.depths() == (0, 1)
    prof.stop()
    read: list[correlation.Correlation] = []
    with profile() as later:
        assert correlation.current() == (0, 0)
        toyland.run_in_op(lambda: read.append(correlation.current()))
        assert correlation.depths() == (0, 0)
    stale.__exit__(None, None, None)
    assert read == [(*op_ids(later, "toy::run"), 0)]


def test_a_profile_that_starts_inside_a_range_and_op_ends_balanced(join: Join) -> None:
    join()
    with record_function("opened before"):
        prof = profile()
        prof.start()
        torch.ones(2) + 1
        assert correlation.depths() == (0, 0)
    prof.stop()
    assert correlation.unbalanced_pops() == 0


def test_the_bridge_knows_exactly_the_ops_that_were_pushed(join: Join) -> None:
    join()
    known: list[Any] = []
    with profile() as prof:
        with record_function("range"):
            for _ in range(700):  # more than one of torch's blocks of 512 ids
                torch.ones(2) + 1
        highest = 100_000
        known = np.flatnonzero(bridge().known_ops(np.arange(highest))).tolist()
        parents = bridge().user_parents()
    ops = {event.id for event in prof.events() if event.name.startswith("aten::")}
    assert ops
    assert set(known) == {one for one in ops if one < highest}
    assert parents == {op_ids(prof, "range")[0]: 0}


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**40, 2**63 - 1, -(2**63)])
def test_an_id_that_no_op_has_is_unknown(join: Join, number: int) -> None:
    join()
    with profile():
        torch.ones(2) + 1
        assert bridge().known_ops(np.array([number])).tolist() == [False]


def test_known_ops_of_a_session_are_forgotten_by_the_next(join: Join) -> None:
    join()
    with profile() as first:
        torch.ones(2) + 1
    ids = np.array([event.id for event in first.events()])
    with profile():
        assert not bridge().known_ops(ids).any()


def test_enclosing_ranges_are_known_by_id(join: Join) -> None:
    join()
    with profile() as prof:
        with record_function("a"), record_function("b"), record_function("c"):
            pass
        parents = bridge().user_parents()
    a, b, c = (op_ids(prof, name)[0] for name in "abc")
    assert parents == {a: 0, b: a, c: b}


def test_get_linked_activity_says_which_ops_the_host_recorded(join: Join) -> None:
    runtime = Runtime()
    answers: dict[int, bool] = {}

    class Asking:
        def __call__(self, logger: Any, get_linked_activity: Any, start_ns: int, end_ns: int) -> None:
            ((op, _),) = runtime.seen
            answers.update({one: get_linked_activity(one) for one in (op, op + 2**32, 0, 10**9)})
            answers[-1] = op in answers

    join(methods={"process_trace": Asking()})
    with profile():
        toyland.run_in_op(runtime.launch)
    ((op, _),) = runtime.seen
    assert answers == {op: True, op + 2**32: False, 0: False, 10**9: False, -1: True}


def test_a_framework_beside_torch_may_push_ids_of_its_own(join: Join) -> None:
    join()
    with profile():
        correlation.push_correlation_id(2**40)
        correlation.push_user_correlation_id(2**41)
        assert correlation.current() == (2**40, 2**41)
        correlation.pop_correlation_id()
        correlation.pop_user_correlation_id()
        assert correlation.current() == (0, 0)
        correlation.pop_correlation_id()
        assert correlation.unbalanced_pops() == 1


def test_a_thread_that_torch_does_not_profile_sees_no_ids(join: Join) -> None:
    join()
    seen: list[correlation.Correlation] = []

    def other() -> None:
        torch.ones(2) + 1
        seen.append(correlation.current())
        toyland.run_in_op(lambda: seen.append(correlation.current()))

    with profile():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
    assert seen == [(0, 0), (0, 0)]


def test_the_ids_of_backward_ops_are_those_of_the_thread_that_runs_them(join: Join) -> None:
    runtime = Runtime()
    join(script=runtime.script)

    class Launching(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            toyland.run_in_op(runtime.launch)
            return grad

    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        Launching.apply(x).sum().backward()
    (owner,) = [event for event in prof.events() if event.kernels]
    assert owner.name == "toy::run"
    assert [kernel.name for kernel in owner.kernels] == ["k"]
