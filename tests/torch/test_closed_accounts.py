"""The ledger says what is in torch's trace, also where a hand-over fails half way or Kineto leaves records out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toyland
from toyland import Join

import devprof
from devprof.capture import PluginLedger, SessionReport
from devprof.capture.ledger import Part
from devprof.contract import ClockDomain
from devprof.errors import CaptureError, LossWarning
from devprof.link import join_launches, link
from devprof.model import ActivityBatch, ActivityType
from devprof.torch.bridge import Bridge, Replayed
from devprof.torch.delivery import Delivery
from devprof.torch.handed import Handed

KERNEL, OVERHEAD = ActivityType.CONCURRENT_KERNEL, ActivityType.OVERHEAD


def _batch(name: str, start_ns: int, kinds: list[ActivityType], **columns: Any) -> ActivityBatch:
    start = start_ns + 10 * np.arange(len(kinds))
    return ActivityBatch.from_columns(
        (name,), activity_type=[int(kind) for kind in kinds], name=0, start=start, end=start + 5, **columns
    )


def _session(tmp_path: Path) -> tuple[SessionReport, list[str]]:
    """Run one, and return its report and the names of the plugins' records in torch's file."""
    with toyland.profile() as prof:
        toyland.run_in_op(lambda: None)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    names = [event["name"] for event in events if event.get("ph") == "X" and event["name"].startswith("its ")]
    return devprof.report_of(prof), names


@pytest.mark.filterwarnings("ignore::devprof.errors.LossWarning")
def test_a_hand_over_that_fails_half_way_keeps_what_was_handed_over_and_drops_the_rest(
    join: Join, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Delivery._append

    def fails(delivery: Delivery, batch: ActivityBatch, *args: Any) -> None:
        if "its third" in batch.strings:
            raise CaptureError("1 records could not be handed to the bridge: the native side is out of memory")
        append(delivery, batch, *args)

    def script(start_ns: int, end_ns: int) -> list[ActivityBatch]:
        return [
            _batch("its first", start_ns, [KERNEL, OVERHEAD]),
            _batch("its second", start_ns + 100, [KERNEL] * 3),
            _batch("its third", start_ns + 200, [KERNEL] * 4),
            _batch("its fourth", start_ns + 300, [KERNEL] * 5),
        ]

    monkeypatch.setattr(Delivery, "_append", fails)
    broken = join(script=script)
    well = join(script=lambda start_ns, end_ns: [_batch("its neighbour's", start_ns, [KERNEL])])
    report, names = _session(tmp_path)
    ledger, other = report.ledgers[broken.label], report.ledgers[well.label]
    assert sorted(names) == ["its first"] * 2 + ["its neighbour's"] + ["its second"] * 3
    assert (ledger.produced, ledger.emitted, ledger.device_work, ledger.linked) == (14, 5, 4, 0)
    assert ledger.dropped == {"devprof failed to process it": 9}
    assert (other.produced, other.emitted) == (1, 1)
    assert [note.split(": ")[1] for note in report.notes] == ["devprof failed to process its records"]


@pytest.mark.filterwarnings("ignore::devprof.errors.LossWarning")
def test_records_that_torch_left_out_as_too_early_are_dropped_from_the_account_of_their_own_plugin(
    join: Join, tmp_path: Path
) -> None:
    """A virtual clock's records are under no window of devprof's, but under Kineto's."""
    second = 10**9

    def ticking(start_ns: int, end_ns: int) -> list[ActivityBatch]:
        return [
            ActivityBatch.from_columns(
                (name,), activity_type=int(KERNEL), name=0, start=[at, at + 10], end=[at + 5, at + 15], clock="virtual"
            )
            for name, at in (("its early", 7 * second), ("its late", 10 * second))
        ]

    virtual = join(
        script=ticking,
        methods={
            "clock_domain": lambda: ClockDomain("virtual", virtual=True),
            "sample_clock": lambda: 10 * second,
        },
    )
    well = join(script=lambda start_ns, end_ns: [_batch("its neighbour's", start_ns, [KERNEL])])
    report, names = _session(tmp_path)
    ledger, other = report.ledgers[virtual.label], report.ledgers[well.label]
    assert sorted(names) == ["its late"] * 2 + ["its neighbour's"]
    assert (ledger.produced, ledger.emitted, ledger.device_work) == (4, 2, 2)
    assert ledger.dropped == {"before window": 2}
    assert (other.produced, other.emitted) == (1, 1)
    assert "2 records started before torch's own window and were left out" in report.notes


@pytest.mark.filterwarnings("ignore::devprof.errors.LossWarning")
def test_where_torch_never_asked_no_record_is_counted_as_emitted(
    join: Join, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = join(script=lambda start_ns, end_ns: [_batch("its own", start_ns, [KERNEL] * 3)])
    monkeypatch.setattr(Bridge, "replayed", lambda bridge, generation: None)
    report, _ = _session(tmp_path)
    ledger = report.ledgers[plugin.label]
    assert (ledger.produced, ledger.emitted, ledger.device_work) == (3, 0, 0)
    assert ledger.dropped == {"torch did not ask for it": 3}
    assert not report.complete


def test_a_difference_between_the_account_and_what_torch_took_is_said(
    join: Join, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(script=lambda start_ns, end_ns: [_batch("its own", start_ns, [KERNEL] * 3)])
    replayed = Bridge.replayed

    def less(bridge: Bridge, generation: int) -> Replayed | None:
        found = replayed(bridge, generation)
        return found and found._replace(emitted=found.emitted - 1)

    monkeypatch.setattr(Bridge, "replayed", less)
    with pytest.warns(LossWarning, match="torch took 2 of 3 records from devprof"):
        report, _ = _session(tmp_path)
    assert report.notes == ["torch took 2 of 3 records from devprof: the accounts of the plugins are wrong"]


def test_what_kineto_did_not_wait_for_is_dropped_from_the_accounts_of_all() -> None:
    """As in a capture that was asked for from outside, whose Kineto waits for a moment only."""
    handed, ledgers = Handed(), [PluginLedger(name, emitted=3, rejected=Counter({"x": 1})) for name in ("a", "b")]
    for ledger in ledgers:
        for count in (1, 2):
            batch = _batch("its own", 1_000, [KERNEL] * count)
            handed.records(ledger, Part(), batch, link([batch], join_launches([batch])).columns[0])
        handed.spans(1)
    handed.lose("Kineto did not wait for it")
    assert [(one.produced, one.emitted) for one in ledgers] == [(4, 0), (4, 0)]
    assert [one.dropped for one in ledgers] == [{"Kineto did not wait for it": 3}] * 2


def test_ranges_on_devices_are_taken_and_are_in_no_account(join: Join, tmp_path: Path) -> None:
    """They are devprof's own rows, beside the plugin's records; the sum with them is what torch took."""
    runtime = toyland.Runtime()
    plugin = join(script=runtime.script)
    with toyland.profile() as prof, devprof.record_function("range"):
        toyland.run_in_op(runtime.launch)
    report = devprof.report_of(prof)
    assert report.notes == []
    assert report.ledgers[plugin.label].emitted == 2
