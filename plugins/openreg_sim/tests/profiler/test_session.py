"""The plugin keeps the contract: it records what was asked for, from start to stop, and nothing of another capture."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from openreg_sim import profiler
from openreg_sim.profiler import OpenRegProfiler
from openreg_sim.ring import RING_DTYPE, CallKind, CopyKind
from openreg_sim.runtime import FailCall, LateFlush, RealClock, Runtime, RuntimeConfig, use_runtime

from devprof.contract import Capabilities, ClockDomain, CorrelationAccess, IActivityProfiler, IActivityProfilerSession
from devprof.contract import TraceStatus as Status
from devprof.model import ActivityType, DeviceInfo, ResourceInfo

KERNEL, LAUNCH = ActivityType.CONCURRENT_KERNEL, ActivityType.PRIVATEUSE1_RUNTIME


def test_the_plugin_says_what_it_is_without_touching_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Runtime:
        raise AssertionError("a device was touched")

    monkeypatch.setattr(profiler, "runtime", refuse)
    plugin = OpenRegProfiler()
    assert isinstance(plugin, IActivityProfiler)
    assert plugin.name() == "openreg"
    assert plugin.capabilities() == Capabilities(
        torch_device="openreg", correlation=CorrelationAccess.NATIVE, description="the simulated device openreg"
    )
    assert plugin.available_activities() == {
        KERNEL,
        LAUNCH,
        ActivityType.GPU_MEMCPY,
        ActivityType.GPU_MEMSET,
        ActivityType.CUDA_SYNC,
    }


def test_a_session_has_every_method_of_the_contract(virtual: Runtime, configure: Any) -> None:
    assert isinstance(configure(), IActivityProfilerSession)


def test_a_capture_holds_what_was_launched_in_it(virtual: Runtime, capture: Any) -> None:
    virtual.launch("before")
    logger = capture(lambda: virtual.launch("inside"))
    virtual.launch("after")
    assert [record.activity_name for record in logger.of(KERNEL)] == ["inside"]
    assert [record.activity_name for record in logger.of(LAUNCH)] == ["orLaunchKernel"]
    assert logger.dropped == []


def test_only_the_kinds_that_were_asked_for_are_recorded(virtual: Runtime, capture: Any) -> None:
    def work() -> None:
        virtual.launch("k")
        virtual.memset(1)
        virtual.memcpy(CopyKind.HOST_TO_DEVICE, 1)
        virtual.stream_synchronize()

    for asked in OpenRegProfiler().available_activities():
        assert {record.activity_type for record in capture(work, asked).activities} == {asked}


def test_work_that_runs_at_stop_on_any_device_is_kept_with_its_true_end(virtual: Runtime, capture: Any) -> None:
    def work() -> None:
        virtual.launch("long", flops=1e12)
        virtual.launch("longer", flops=2e12, device=1)

    logger = capture(work, KERNEL)
    truth = virtual.ground_truth()[:2]
    origin_ns = virtual.device_clock.origin_ns
    assert [(r.activity_name, r.device, r.end_ns + origin_ns) for r in logger.of(KERNEL)] == [
        ("long", 0, int(truth["end_ns"][0])),
        ("longer", 1, int(truth["end_ns"][1])),
    ]


def test_the_captures_own_waiting_is_not_in_it(virtual: Runtime, capture: Any) -> None:
    logger = capture(lambda: virtual.launch("k"))
    assert {record.activity_name for record in logger.activities} == {"k", "orLaunchKernel"}


def test_captures_in_a_row_share_nothing(virtual: Runtime, capture: Any) -> None:
    names = [
        [record.activity_name for record in capture(lambda number=number: virtual.launch(f"k{number}")).of(KERNEL)]
        for number in range(3)
    ]
    assert names == [["k0"], ["k1"], ["k2"]]


def test_what_an_earlier_client_left_is_not_counted_as_this_captures_loss(virtual: Runtime, capture: Any) -> None:
    virtual.inject(LateFlush(flushes=1, forced=True))
    capture(lambda: virtual.launch("late"))
    virtual.clear_faults()
    logger = capture(lambda: virtual.launch("k"))
    assert [record.activity_name for record in logger.of(KERNEL)] == ["k"]
    assert logger.dropped == []


def test_what_a_late_flush_left_behind_at_the_stop_is_counted_as_lost(
    virtual: Runtime, configure: Any, process: Any
) -> None:
    session = configure(KERNEL, LAUNCH)
    session.start()
    virtual.launch("late")
    virtual.inject(LateFlush(flushes=1, forced=True))
    session.stop()
    logger = process(session)
    assert (logger.activities, logger.dropped) == ([], [(2, "no activity buffer")])


def test_a_devices_error_at_the_stop_is_told_and_costs_no_record(
    virtual: Runtime, configure: Any, process: Any
) -> None:
    """A call of the native device had returned when it failed, so its error comes out where somebody waits."""
    session = configure(KERNEL)
    session.start()
    virtual.launch("before")
    virtual.inject(FailCall(nth=1))
    failing = np.zeros(1, RING_DTYPE)
    failing["kind"] = CallKind.LAUNCH
    virtual.replay(failing)
    session.stop()
    assert [record.activity_name for record in process(session).activities] == ["before"]
    assert session.errors() == ["device 0: orLaunchKernel: failed by a fault rule (LAUNCH_FAILURE)"]


def test_a_session_may_be_dropped_stopped_unstarted_or_stopped_twice(
    virtual: Runtime, configure: Any, process: Any
) -> None:
    configure()
    unstarted = configure()
    unstarted.stop()
    assert process(unstarted).activities == []
    session = configure(KERNEL)
    session.start()
    virtual.launch("k")
    session.stop()
    session.stop()
    assert [record.activity_name for record in process(session).activities] == ["k"]


def test_a_session_that_was_dropped_while_recording_leaves_nothing_to_the_next(
    virtual: Runtime, configure: Any, capture: Any
) -> None:
    abandoned = configure()
    abandoned.start()
    abandoned.push_correlation_id(9)
    virtual.launch("before")
    virtual.device_synchronize()
    logger = capture(lambda: virtual.launch("k"), KERNEL)
    assert [(r.activity_type, r.activity_name, r.linked) for r in logger.activities] == [(KERNEL, "k", 0)]


def test_the_hooks_may_run_on_different_threads(virtual: Runtime, configure: Any, process: Any) -> None:
    session, found = configure(KERNEL), []

    def on_a_thread(call: Callable[[], object]) -> None:
        thread = threading.Thread(target=lambda: found.append(call()))
        thread.start()
        thread.join()

    on_a_thread(session.start)
    virtual.launch("k")
    on_a_thread(session.stop)
    on_a_thread(lambda: [record.activity_name for record in process(session).activities])
    assert found == [None, None, ["k"]]


def test_the_state_follows_the_capture(virtual: Runtime, configure: Any) -> None:
    session = configure()
    states = [session.status()]
    session.start()
    states.append(session.status())
    session.stop()
    states.append(session.status())
    assert states == [Status.READY, Status.RECORDING, Status.PROCESSING]
    assert session.errors() == []


def test_ids_pushed_on_a_thread_are_on_its_launches_and_on_their_work(
    virtual: Runtime, configure: Any, process: Any
) -> None:
    session = configure(KERNEL, LAUNCH)
    session.start()
    session.push_user_correlation_id(2**40)
    session.push_correlation_id(5)
    virtual.launch("in both")
    session.pop_correlation_id()
    virtual.launch("in the range")
    session.pop_user_correlation_id()
    session.pop_user_correlation_id()
    virtual.launch("in none")
    session.stop()
    logger = process(session)
    for kind in (KERNEL, LAUNCH):
        assert [(r.linked, r.linked_user) for r in logger.of(kind)] == [(5, 2**40), (0, 2**40), (0, 0)]


def test_a_launch_and_its_work_share_a_number_and_the_thread(virtual: Runtime, capture: Any) -> None:
    logger = capture(lambda: [virtual.launch("k") for _ in range(3)], KERNEL, LAUNCH)
    launches = [(record.id, record.thread_id) for record in logger.of(LAUNCH)]
    assert launches == [(record.id, record.thread_id) for record in logger.of(KERNEL)]
    assert launches == [(number, threading.get_native_id()) for number in (1, 2, 3)]


def test_paused_work_is_left_out_and_ids_survive_the_pause(virtual: Runtime, configure: Any, process: Any) -> None:
    session = configure(KERNEL)
    session.start()
    session.push_correlation_id(5)
    virtual.launch("before")
    session.toggle_collection_dynamic(False)
    virtual.launch("paused")
    session.toggle_collection_dynamic(True)
    virtual.launch("after")
    session.stop()
    assert [(r.activity_name, r.linked) for r in process(session).activities] == [("before", 5), ("after", 5)]


def test_records_beyond_the_plugins_buffers_are_dropped_and_said_so(
    virtual: Runtime, capture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiler, "BUFFER_BYTES", 800)
    monkeypatch.setattr(profiler, "MAX_BUFFERS", 2)
    logger = capture(lambda: [virtual.launch("k") for _ in range(50)], KERNEL)
    assert len(logger.activities) == 20
    assert logger.dropped == [(30, "no activity buffer")]


def test_rows_have_names_for_all_devices_and_streams(virtual: Runtime, configure: Any) -> None:
    virtual.create_stream(device=1)
    session = configure(KERNEL)
    assert session.get_device_infos() == [
        DeviceInfo(0, "openreg 0", label="simulated"),
        DeviceInfo(1, "openreg 1", label="simulated"),
    ]
    assert session.get_resource_infos() == [
        ResourceInfo(0, 0, "stream 0"),
        ResourceInfo(0, 1, "stream 0"),
        ResourceInfo(1, 1, "stream 1"),
    ]
    assert ResourceInfo(1_000_001, 1, "stream 1 (sync)") in configure().get_resource_infos()


def test_facts_about_devices_and_capture_are_json_values(virtual: Runtime, configure: Any) -> None:
    session = configure()
    facts = {"name": "openreg (simulated)", "totalGlobalMem": 16 << 30, "flopsPerSecond": 10e12}
    assert session.get_device_properties() == [{"id": 0, **facts}, {"id": 1, **facts}]
    assert session.get_metadata() == {"openreg clock": "virtual"}


def test_the_clock_domain_is_the_device_clock(virtual: Runtime, configure: Any) -> None:
    session = configure()
    assert session.clock_domain() == ClockDomain("openreg", 1e9, virtual=True)
    virtual.launch("k", flops=1e9)
    virtual.device_synchronize()
    assert session.sample_clock() == virtual.host_clock.now_ns() - virtual.device_clock.origin_ns


def test_without_the_native_device_there_are_no_native_functions(virtual: Runtime, configure: Any) -> None:
    import sys

    if "openreg_sim.device" in sys.modules:
        pytest.skip("this process has loaded the native device")
    assert configure().native_correlation() is None


class _Reporter:
    def __init__(self) -> None:
        self.reports: list[tuple[int, ...]] = []

    def report_memory_usage(self, *figures: int) -> None:
        self.reports.append(figures)

    def report_out_of_memory(self, *figures: int) -> None:
        raise AssertionError("memory did not run out")


@pytest.mark.parametrize("wanted", [True, False])
def test_memory_is_reported_to_the_host_while_it_profiles_memory(virtual: Runtime, capture: Any, wanted: bool) -> None:
    reporter = _Reporter()
    addresses: list[int] = []
    capture(lambda: addresses.append(virtual.allocate(100)), memory=reporter, profile_memory=wanted)
    virtual.free(addresses[0])
    assert reporter.reports == ([(addresses[0], 100, 100, 512, 0)] if wanted else [])


@pytest.fixture
def real() -> Iterator[Runtime]:
    """A runtime on the real clock, with a device clock that is visibly off."""
    config = RuntimeConfig(clock_offset_ticks=999, clock_drift_ppm=300.0)
    with use_runtime(Runtime(config, RealClock())) as runtime:
        yield runtime


def test_in_real_time_launches_are_unix_ns_and_device_work_is_ticks(real: Runtime, capture: Any) -> None:
    logger = capture(lambda: real.launch("k"), KERNEL, LAUNCH)
    row = real.ground_truth()[0]
    assert {batch.clock for batch in logger.batches} == {"unix_ns", "openreg"}
    (launch,), (kernel,) = logger.of(LAUNCH), logger.of(KERNEL)
    assert (launch.start_ns, launch.end_ns) == (int(row["host_start_ns"]), int(row["host_end_ns"]))
    assert kernel.start_ns == real.device_clock.ticks_at(int(row["start_ns"]))
