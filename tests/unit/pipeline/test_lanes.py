"""Several plugins of one capture: numbers and devices that do not meet, and accounts that close where one fails."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from devprof.capture import LaneResult, PluginLedger, SessionReport
from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity
from devprof.pipeline import LinkedLane, accounted, lanes, linked_lanes

KERNEL, CALL = ActivityType.CONCURRENT_KERNEL, ActivityType.PRIVATEUSE1_RUNTIME
START_NS, END_NS = 1_000_000, 2_000_000
INT32 = 2**31 - 1


def _delivery(name: str, *devices: int, kind: ActivityType = KERNEL, named: int | None = None) -> LaneResult:
    """One record per device, 10 ns apart."""
    records = [
        GenericTraceActivity(kind, "k", START_NS + 10 * n, START_NS + 10 * n + 5, device=device)
        for n, device in enumerate(devices)
    ]
    infos = [] if named is None else [DeviceInfo(named, "named")]
    return LaneResult(name, PluginLedger(name), [ActivityBatch.from_activities(records)], device_infos=infos)


def _lanes(*results: LaneResult, report: SessionReport | None = None) -> list[LinkedLane]:
    report = report or SessionReport("python")
    report.start_ns, report.end_ns = START_NS, END_NS
    return list(linked_lanes(results, report, known_ops=None, user_parents={}))


def _devices(lane: LinkedLane) -> list[int]:
    return np.concatenate([columns.device for columns in lane.columns]).tolist()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (_delivery("a", 0), _delivery("b", 0), [[0], [100]]),
        (_delivery("a", 3, 250), _delivery("b", 1), [[3, 250], [301]]),
        (_delivery("a", 0, named=99), _delivery("b", 0), [[0], [100]]),
        (_delivery("a", 0, named=100), _delivery("b", 0), [[0], [200]]),
        (_delivery("a"), _delivery("b", 0), [[], [100]]),
        (_delivery("a", 700, kind=CALL), _delivery("b", 0), [[700], [100]]),  # a call's row is its thread
        (_delivery("a", INT32), _delivery("b", 0), [[INT32], [100]]),
        (_delivery("a", 0), _delivery("b", INT32), [[0], [INT32]]),
        (_delivery("a", 0), _delivery("b", 0, named=INT32), [[0], [0]]),
    ],
    ids=[
        "0, 0",
        "behind all",
        "named 99",
        "named 100",
        "nothing",
        "a call",
        "greatest first",
        "greatest next",
        "greatest named",
    ],
)
def test_devices_of_two_plugins_do_not_meet_while_int32_has_room(
    first: LaneResult, second: LaneResult, expected: list[list[int]]
) -> None:
    assert [_devices(lane) for lane in _lanes(first, second)] == expected


def test_launch_numbers_go_on_from_plugin_to_plugin_and_begin_anew_with_each_session() -> None:
    for _ in range(2):
        made = _lanes(_delivery("a", 0, 0), _delivery("b", 0))
        assert [lane.columns[0].id.tolist() for lane in made] == [[2**30, 2**30 + 1], [2**30 + 2]]


def test_a_plugin_whose_records_cannot_be_linked_is_lost_with_a_closed_account_and_the_others_are_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was left out on purpose before the failure is not counted a second time."""
    monkeypatch.setattr(lanes, "FIRST_LAUNCH", INT32)  # one number is left
    broken = _delivery("broken", 0, 0)
    early = GenericTraceActivity(KERNEL, "early", START_NS - 10, START_NS - 5)
    broken.batches.append(ActivityBatch.from_activities([early] * 3))
    broken.ledger.rejected["no timestamp"] = 1
    report = SessionReport("python")
    with caplog.at_level(logging.CRITICAL):
        made = _lanes(broken, _delivery("well", 0), report=report)
    assert [lane.name for lane in made] == ["well"]
    assert broken.ledger.produced == 2 + 3 + 1
    assert broken.ledger.dropped == {"before window": 3, "devprof failed to process it": 2}
    [note] = report.notes
    assert note.startswith("broken: devprof failed to process its records: UsageError('launch numbers")


def test_what_reached_the_trace_before_a_failure_stays_emitted(caplog: pytest.LogCaptureFixture) -> None:
    ledger, report = PluginLedger("a", emitted=5, device_work=4, linked=3), SessionReport("torch")
    with caplog.at_level(logging.CRITICAL), accounted(ledger, report) as part:
        part.records, part.device_work, part.linked = 2, 1, 1
        raise UsageError("no")
    assert (ledger.produced, ledger.emitted, ledger.device_work, ledger.linked) == (5, 2, 1, 1)
    assert ledger.dropped == {"devprof failed to process it": 3}
    assert report.notes == ["a: devprof failed to process its records: UsageError('no')"]
