"""A plugin that hands over records while it records: in long captures with limits, and for snapshots."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from devprof.capture import CaptureSession, Lane, LaneResult, samples
from devprof.capture.infos import MAX_INFOS, Infos
from devprof.capture.settings import limits_here, with_limits
from devprof.clock.sampling import READINGS
from devprof.contract import ActivityLogger, ClockDomain, ClockSample
from devprof.errors import PluginWarning
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from devprof.model.reasons import BEFORE_WINDOW, LET_GO
from devprof.store.limits import DEFAULT_RECORDS, Limits, WhenFull
from devprof.store.totals import NameTotal
from tests.unit.capture.plugins import CONFIG, BareSession, PatientRunner, Session, plugin

KERNEL = ActivityType.CONCURRENT_KERNEL
RING = Limits(100, None, WhenFull.RING)


def kernels(first: int, count: int) -> ActivityBatch:
    return ActivityBatch.from_activities(
        [GenericTraceActivity(KERNEL, "k", first + i, first + i + 1) for i in range(count)]
    )


class Flushing(Session):
    """Hands over ten kernels at each flush, and three at the end."""

    given: int = 0

    def flush_trace(self, logger: ActivityLogger) -> Any:
        self.give(logger, 10)
        logger.handle_resource_info(ResourceInfo(7, 0, f"after {self.given}"))
        return self._does("flush_trace")

    def give(self, logger: ActivityLogger, count: int) -> None:
        logger.handle_activities(kernels(1 + self.given, count))
        self.given += count


def lane_of(
    session: Any, runner: PatientRunner, limits: Limits | None = None, now: Callable[[], int] | None = None
) -> Lane:
    registered = plugin()
    registered.profiler._make = lambda: session  # type: ignore[attr-defined]
    lane = Lane(registered, runner, now or CONFIG.now_ns, limits)
    lane.configure(frozenset(ActivityType), CONFIG)
    lane.start()
    return lane


def flushing(faults: dict[str, Callable[[], Any]] | None = None, clock: ClockDomain | None = None) -> Flushing:
    session = Flushing(faults or {}, lambda logger: session.give(logger, 3), clock)
    return session


def starts(result: LaneResult) -> list[int]:
    return sorted(int(start) for batch in result.batches for start in batch.start)


def test_what_is_handed_over_while_recording_is_delivered_with_the_rest_once(runner: PatientRunner) -> None:
    session = flushing()
    lane = lane_of(session, runner)
    lane.drain()
    lane.drain()
    result = lane.finish(bool, 5, 50)
    assert starts(result) == list(range(1, 24))
    assert session.calls[1:6] == ["start", "flush_trace", "flush_trace", "stop", "process_trace"]
    assert result.resource_infos == [ResourceInfo(7, 0, "stream 7")], "the last word counts"


def test_a_plugin_without_the_hook_is_left_alone_and_said_to_come_late(runner: PatientRunner) -> None:
    lane = lane_of(BareSession(), runner)
    assert (lane.flushes, lane.comes_late) == (False, True)
    lane.drain(describe=True)
    assert starts(lane.so_far(0)) == []
    assert starts(lane.finish(bool, 5, 50)) == [10]


def test_before_the_start_and_after_the_stop_nobody_is_asked(runner: PatientRunner) -> None:
    session = flushing()
    lane = lane_of(session, runner)
    lane.finish(bool, 5, 50)
    lane.drain()
    assert "flush_trace" not in session.calls


@pytest.mark.parametrize("fault", [lambda: 1 / 0, lambda: "text"])
def test_a_flush_that_misbehaves_sets_its_plugin_aside_and_what_it_gave_stays(
    fault: Callable[[], Any], runner: PatientRunner
) -> None:
    session = flushing({"flush_trace": fault})
    lane = lane_of(session, runner)
    with pytest.warns(PluginWarning, match="session.flush_trace"):
        lane.drain()
    lane.drain()
    result = lane.finish(bool, 5, 50)
    assert starts(result) == list(range(1, 11))
    assert session.calls[1:] == ["start", "flush_trace", "stop"]
    assert len(result.ledger.failures) == 1


def test_a_flush_that_hangs_is_given_up_on_and_writes_nothing_afterwards(
    runner: PatientRunner, hang: Callable[[], None], release: threading.Event
) -> None:
    kept: list[ActivityLogger] = []

    class Hanging(Flushing):
        def flush_trace(self, logger: ActivityLogger) -> Any:
            kept.append(logger)
            self.give(logger, 10)
            hang()
            self.give(logger, 10)

    lane = lane_of(Hanging({}, lambda logger: None, None), runner)
    with pytest.warns(PluginWarning, match=r"session.flush_trace: did not come back within"):
        lane.drain()
    result = lane.finish(bool, 5, 50)
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("devprof-"):
            thread.join(timeout=30)
    assert starts(result) == list(range(1, 11))
    assert result.ledger.dropped == {}
    assert len(kept) == 1


def test_so_far_is_an_account_of_its_own_and_changes_nothing(runner: PatientRunner) -> None:
    now = itertools.count(100)
    session = flushing()
    lane = lane_of(session, runner, RING, lambda: next(now))
    for _ in range(30):
        lane.drain(describe=True)
    found = lane.so_far(0)
    found.ledger.dropped["mine"] += 5
    found.batches.clear()
    again = lane.so_far(0)
    assert again.ledger.dropped == {LET_GO: 300 - len(starts(again))}
    assert starts(again) == list(range(301 - len(starts(again)), 301))
    assert again.device_infos == [DeviceInfo(0, "demo 0")]
    assert again.resource_infos == [ResourceInfo(7, 0, "stream 7")]
    assert again.let_go_through == {"unix_ns": 300 - len(starts(again))}
    nothing = lane.so_far(10**9)
    assert (starts(nothing), nothing.ledger.dropped[BEFORE_WINDOW]) == ([], len(starts(again)))
    result = lane.finish(bool, 5, 50)
    assert len(starts(result)) + result.ledger.dropped[LET_GO] == 303


def test_sums_of_a_plugin_are_over_all_it_gave(runner: PatientRunner) -> None:
    lane = lane_of(flushing(), runner, Limits(100, None, WhenFull.TOTALS))
    for _ in range(30):
        lane.drain()
    assert lane.so_far(0).totals["unix_ns"].rows("demo") == [NameTotal("demo", "k", KERNEL, 300, 300, 1, 1)]
    assert lane.finish(bool, 5, 50).totals["unix_ns"].rows("demo") == [NameTotal("demo", "k", KERNEL, 303, 303, 1, 1)]


def test_a_capture_with_limits_asks_again_and_again_and_one_without_never(
    runner: PatientRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devprof.capture.session._DRAIN_EVERY_S", 0.001)
    flushed: dict[bool, int] = {}
    for is_limited in (False, True):
        session, three_times = flushing(), threading.Event()
        counted = itertools.count(1)
        session._faults = {"flush_trace": lambda n=counted, e=three_times: e.set() if next(n) == 3 else None}  # type: ignore[misc]
        registered = plugin()
        registered.profiler._make = lambda s=session: s  # type: ignore[attr-defined,misc]
        capture = CaptureSession([registered], CONFIG, runner=runner, limits=RING if is_limited else None)
        capture.prepare(frozenset(ActivityType))
        capture.start()
        capture.watch_clocks()
        assert three_times.wait(60 if is_limited else 0.05) is is_limited
        (result,) = capture.stop(bool, 1, 10**9)
        flushed[is_limited] = session.calls.count("flush_trace")
        assert len(starts(result)) + result.ledger.dropped.total() == 3 + 10 * flushed[is_limited]
    assert flushed[False] == 0
    assert flushed[True] >= 3


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "limits"),
    [
        ({}, Limits(DEFAULT_RECORDS)),
        ({"DEVPROF_MAX_RECORDS": "7", "DEVPROF_WHEN_FULL": "ring"}, Limits(7, None, WhenFull.RING)),
        ({"DEVPROF_MAX_BYTES": "1000000"}, Limits(DEFAULT_RECORDS, 1_000_000)),
        ({"DEVPROF_WHEN_FULL": "circle"}, Limits(DEFAULT_RECORDS)),
    ],
)
def test_the_environment_sets_limits(
    variables: dict[str, str], limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert limits_here() == limits


def test_what_a_profile_is_told_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_WHEN_FULL", "spill")
    with with_limits(RING):
        assert limits_here() == RING
    with with_limits(None):
        assert limits_here().when_full is WhenFull.SPILL


# -- what grows with time ----------------------------------------------------------------------------------------------


def test_clock_samples_of_hours_stay_few_and_reach_from_the_first_to_the_last() -> None:
    kept: list[ClockSample] = []
    for second in range(20_000):
        kept += [ClockSample(second * 10**9 + i, second, second * 10**9 + i + 1) for i in range(READINGS)]
        samples.thin_out(kept)
    assert samples.MAX_BURSTS // 4 <= len(kept) // READINGS <= samples.MAX_BURSTS
    assert (kept[0].device_ticks, kept[-1].device_ticks) == (0, 19_999)
    ticks = [one.device_ticks for one in kept[::READINGS]]
    assert ticks == sorted(set(ticks))
    assert max(after - before for before, after in itertools.pairwise(ticks)) <= 2 * 20_000 // (samples.MAX_BURSTS // 2)
    assert all(len({one.device_ticks for one in kept[at : at + READINGS]}) == 1 for at in range(0, len(kept), READINGS))


def test_times_since_a_moment_need_the_samples_around_them() -> None:
    kept = [ClockSample(s * 10**9, s, s * 10**9 + 1) for s in range(100) for _ in range(READINGS)]
    assert [one.device_ticks for one in samples.recent(kept, None)] == [one.device_ticks for one in kept]
    assert {one.device_ticks for one in samples.recent(kept, 90 * 10**9)} == set(range(80, 100))
    assert {one.device_ticks for one in samples.recent(kept, 10**15)} == {98, 99}


def test_rows_that_are_named_again_and_again_are_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    infos = Infos()
    for number in range(MAX_INFOS + 10):
        infos.add([DeviceInfo(number, "d")], [ResourceInfo(number, 0, "r")])
    infos.add([DeviceInfo(3, "latest")], [ResourceInfo(4, 0, "newest")])
    devices, resources = [DeviceInfo(5, "given")], [ResourceInfo(6, 0, "told")]
    infos.put_before(devices, resources)
    assert (len(devices), len(resources)) == (MAX_INFOS, MAX_INFOS)
    assert (devices[3], devices[-1]) == (DeviceInfo(3, "latest"), DeviceInfo(5, "given"))
    assert (resources[4], resources[-1]) == (ResourceInfo(4, 0, "newest"), ResourceInfo(6, 0, "told"))
