"""Checks of a finished torch profile: what must hold of its file, its events and its account.

Used by ``devprof demo`` and by the tests; each check names what it found, so that a failure can be read.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from torch._C._autograd import DeviceType

from devprof.capture import SessionReport

__all__ = ["DEVICE_CATEGORIES", "Check", "load_strict", "verify"]

DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
"""``cat`` of a slice that is work on a device."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was checked, whether it held, what was found."""

    what: str
    passed: bool
    found: str


def load_strict(path: Path) -> dict[str, Any]:
    """Read a trace as strict JSON.

    Raises:
        ValueError: NaN or Infinity, a key twice in one object, or anything else that strict JSON forbids.
    """

    def refuse(word: str) -> None:
        raise ValueError(f"{path} holds the bare word {word}, which JSON does not know")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        if twice:
            raise ValueError(f"{path} holds an object with the key {twice[0]!r} twice")
        return dict(pairs)

    text = path.read_bytes().decode("utf-8")
    # times need more digits than a double holds
    loaded: dict[str, Any] = json.loads(text, parse_constant=refuse, parse_float=Decimal, object_pairs_hook=unique)
    return loaded


def verify(profile: Any, trace: dict[str, Any], report: SessionReport) -> list[Check]:
    """Check a profile that has ended, the trace it exported, and devprof's report of it."""
    events = trace["traceEvents"]
    checks: tuple[tuple[str, Callable[[], tuple[bool, str]]], ...] = (
        ("the ledger closes and nothing was lost", lambda: _ledger(report, events)),
        ("every device record belongs to exactly one op", lambda: _owners(profile)),
        ("device time of ops = of records", lambda: _sums(profile)),
        ("every arrow leaves a launch and arrives at work", lambda: _arrows(events)),
        ("every row has a name", lambda: _rows(events)),
    )
    return [Check(what, *run()) for what, run in checks]


def _is_device(event: Any) -> bool:
    return event.device_type not in (DeviceType.CPU, DeviceType.MKLDNN) and not event.is_user_annotation


def _ledger(report: SessionReport, events: list[dict[str, Any]]) -> tuple[bool, str]:
    shown = sum(event.get("cat") in DEVICE_CATEGORIES for event in events)
    work = sum(ledger.device_work for ledger in report.ledgers.values())
    produced = sum(ledger.produced for ledger in report.ledgers.values())
    found = f"{produced} records produced, {work} device records emitted, {shown} in the trace"
    return report.clean and shown == work, "; ".join([found, *report.complaints()])


def _owners(profile: Any) -> tuple[bool, str]:
    events = profile.events()
    records = [event for event in events if _is_device(event)]
    owned = Counter(
        (kernel.name, kernel.device, kernel.duration)
        for event in events
        if event.device_type == DeviceType.CPU
        for kernel in event.kernels
    )
    wanted = Counter((event.name, event.device_index, event.time_range.elapsed_us()) for event in records)
    return bool(records) and owned == wanted, f"{owned.total()} owned, {len(records)} recorded"


def _sums(profile: Any) -> tuple[bool, str]:
    events = profile.events()
    records_us = sum(event.time_range.elapsed_us() for event in events if _is_device(event))
    ops_us = sum(event.self_device_time_total for event in events if event.device_type == DeviceType.CPU)
    return abs(records_us - ops_us) < 1e-3 * max(
        1, len(events)
    ), f"{ops_us:.3f} us over ops, {records_us:.3f} us over records"


def _inside(event: dict[str, Any], slices: Iterable[dict[str, Any]]) -> bool:
    return any(one["ts"] <= event["ts"] <= one["ts"] + one["dur"] for one in slices)


def _arrows(events: list[dict[str, Any]]) -> tuple[bool, str]:
    flows = [event for event in events if event.get("cat") == "ac2g" and event["ph"] in "sf"]
    starts = Counter(event["id"] for event in flows if event["ph"] == "s")
    finishes = Counter(event["id"] for event in flows if event["ph"] == "f")
    rows: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append(event)
    adrift = [event["id"] for event in flows if not _inside(event, rows[event["pid"], event["tid"]])]
    well = set(starts) == set(finishes) and all(count == 1 for count in starts.values()) and not adrift
    return bool(
        flows
    ) and well, f"{len(starts)} launches, {finishes.total()} arrivals, {len(adrift)} outside their slices"


def _rows(events: list[dict[str, Any]]) -> tuple[bool, str]:
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    devices = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    used = {(e["pid"], e["tid"]) for e in events if e.get("cat") in (*DEVICE_CATEGORIES, "gpu_user_annotation")}
    missing = [row for row in used if row not in named or row[0] not in devices]
    return bool(used) and not missing, f"{len(used)} device rows, {len(missing)} without a name"
