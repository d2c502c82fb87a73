"""A plugin whose device has a clock of its own: its ticks become Unix time, within the stated uncertainty."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import toyland
from toyland import Deliver, Join, kernel, profile

import devprof
from devprof.contract import ClockDomain
from devprof.model import ActivityBatch

OFFSET_NS = 123_456_789_000


def ticks() -> int:
    """Read a device clock at half the host's rate, far away from it."""
    return (time.time_ns() - OFFSET_NS) // 2


HALF_RATE = {"clock_domain": lambda: ClockDomain("half", ticks_per_second=5e8), "sample_clock": ticks}


def test_ticks_become_unix_time_within_the_stated_uncertainty(deliver: Deliver) -> None:
    host: list[int] = []
    device: list[int] = []

    def body() -> None:
        for _ in range(3):
            torch.ones(2).neg()
            host.append(time.time_ns())
            device.append(ticks())
            host.append(time.time_ns())

    session = deliver(lambda start_ns, end_ns: [kernel(at=at, ns=50) for at in device], body=body, methods=HALF_RATE)
    starts = [toyland.absolute_ns(session.trace, event) for event in toyland.slices(session.trace, "kernel")]
    slack = int(session.ledger.clock["uncertainty_ns"]) + 2  # type: ignore[call-overload]
    assert len(starts) == 3
    for start, before, after in zip(starts, host[::2], host[1::2], strict=True):
        assert before - slack <= start <= after + slack
    durations = [float(event["dur"]) for event in toyland.slices(session.trace, "kernel")]
    assert durations == pytest.approx([0.1] * 3, abs=0.002)
    assert session.trace["devprof"]["plugins"][session.ledger.plugin]["clock"]
    assert session.ledger.rejected.total() == 0


def test_a_virtual_clock_is_exempt_from_the_window_and_exact(deliver: Deliver) -> None:
    methods = {"clock_domain": lambda: ClockDomain("virtual", virtual=True), "sample_clock": lambda: 1000}
    session = deliver(
        lambda start_ns, end_ns: [kernel("a", at=1000, ns=7), kernel("b", at=1000 + 10**12, ns=13)], methods=methods
    )
    a, b = toyland.slices(session.trace, "kernel")
    assert (a["name"], b["name"]) == ("a", "b")
    assert (int(a["dur"] * 1000), int(b["dur"] * 1000)) == (7, 13)
    assert toyland.absolute_ns(session.trace, b) - toyland.absolute_ns(session.trace, a) == 10**12
    assert session.ledger.emitted == 2


def test_a_clock_that_cannot_be_sampled_is_refused_and_named(deliver: Deliver) -> None:
    session = deliver([kernel(at=5)], methods={"clock_domain": lambda: ClockDomain("mute")})
    assert toyland.names(session.trace, "kernel") == []
    (warning,) = session.warned
    assert "session.clock_domain" in warning
    assert "has no sample_clock()" in warning


def test_batches_on_the_hosts_clock_may_stand_beside_batches_on_the_devices(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> list[Any]:
        columns: dict[str, Any] = {"activity_type": 5, "name": 0}
        at = (start_ns - OFFSET_NS) // 2 + 50
        return [
            ActivityBatch.from_columns(("host",), **columns, start=[start_ns + 100], end=[start_ns + 105]),
            ActivityBatch.from_columns(("device",), **columns, start=[at], end=[at + 5], clock="half"),
        ]

    session = deliver(script, body=lambda: [torch.ones(2).neg() for _ in range(100)], methods=HALF_RATE)
    assert sorted(toyland.names(session.trace, "kernel")) == ["device", "host"]


def test_a_batch_on_a_clock_that_nobody_named_is_refused_with_both_names(join: Join) -> None:
    def script(start_ns: int, end_ns: int) -> list[Any]:
        return [ActivityBatch.from_columns(("k",), activity_type=5, name=0, start=[1], end=[2], clock="other")]

    plugin = join(script=script)
    with pytest.warns(devprof.errors.PluginWarning, match="'other'.*'unix_ns'"), profile() as prof:
        pass
    assert devprof.report_of(prof).ledgers[plugin.label].emitted == 0


def gone(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not condition()


def test_the_thread_that_samples_clocks_ends_with_its_session(join: Join) -> None:
    def sampling() -> bool:
        return any(thread.name == "devprof-clock" for thread in threading.enumerate())

    join(methods=HALF_RATE)
    with profile():
        assert sampling()
    assert gone(sampling)
