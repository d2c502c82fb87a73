"""The recordings beside this file: they are what the generator makes, and a replay has what was recorded."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devprof.model import ActivityType
from devprof.profiler import profile
from devprof.registry import register, unregister
from devprof.replay import ReplayProfiler, load, run_host_side
from devprof.testing import plugin_of

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.devrec"))
WORK = (ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET)


@contextmanager
def replayed(path: Path, **options: Any) -> Iterator[ReplayProfiler]:
    profiler = ReplayProfiler(path, **options)
    register(plugin_of(profiler), "golden")
    try:
        yield profiler
    finally:
        unregister("golden")


def profiled(path: Path, **options: Any) -> Any:
    """Profile a recording with its host's side."""
    with replayed(path, **options) as profiler, profile(activities=["cpu", "golden"], host="python") as prof:
        run_host_side(profiler.player)
    return prof


def device_records(prof: Any) -> list[Any]:
    """Return everything that a trace says of device work, times relative to the start of the window; and whose it is."""
    trace = prof.trace
    names = {int(trace.id[e]): trace.name_of(e) for e in trace.of_type(ActivityType.CPU_OP).tolist()}
    return sorted(
        (
            int(trace.start_ns[event]) - trace.window_start_ns,
            int(trace.end_ns[event] - trace.start_ns[event]),
            trace.name_of(event),
            trace.rows[trace.row[event]].name,
            names.get(int(trace.linked[event]), ""),
            str({key: value for key, value in trace.items_of(event).items() if key != "External id"}),
        )
        for event in trace.of_type(*WORK).tolist()
    )


def test_the_generator_still_makes_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("openreg_sim", reason="the simulated device is not installed")
    sys.path.insert(0, str(HERE))
    try:
        from make import PROGRAMS, main
    finally:
        sys.path.remove(str(HERE))
    main(tmp_path)
    assert sorted(PROGRAMS) == [path.stem for path in FILES]
    for path in FILES:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), (
            f"{path.name} has changed: if that is meant, run `python tests/recordings/make.py`"
        )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_replay_has_the_recorded_device_work_to_the_nanosecond_under_the_recorded_ops(path: Path) -> None:
    (session,) = load(path).sessions
    names = dict(zip(session.host.id.tolist(), session.host.names, strict=True))
    (anchor, *_), domain = session.samples, session.domain
    assert domain is not None
    work = [one for batch in session.batches for one in batch.activities() if one.activity_type in WORK]
    expected = sorted(
        (
            round((one.start_ns - anchor.device_ticks) * 1e9 / domain.ticks_per_second),
            round((one.end_ns - one.start_ns) * 1e9 / domain.ticks_per_second),
            one.activity_name,
            names.get(one.linked, ""),
        )
        for one in work
    )
    found = device_records(profiled(path))
    assert [(start, length, name, op) for start, length, name, _, op, _ in found] == expected
    assert found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_two_replays_are_the_same(path: Path) -> None:
    first, second = profiled(path), profiled(path)
    assert device_records(first) == device_records(second)
    accounts = [prof.report.ledgers["replay"].as_dict() | {"clock": None} for prof in (first, second)]
    assert accounts[0] == accounts[1]


def test_what_the_device_lost_is_in_the_account_of_the_replay() -> None:
    with pytest.warns(UserWarning, match="2 of 10 records were lost"):
        prof = profiled(HERE / "lost_records.devrec")
    ledger = prof.report.ledgers["replay"]
    assert dict(ledger.dropped) == {"no activity buffer": 2}
    assert (ledger.produced, ledger.emitted) == (10, 8)


def test_a_program_of_its_own_gets_the_recorded_work_by_the_order_of_its_ops() -> None:
    from devprof.host import RecordFunction

    path = HERE / "two_devices.devrec"
    with replayed(path), profile(activities=["cpu", "golden"], host="python") as prof, RecordFunction("all"):
        for name in ("first", "second", "third", "fourth"):
            with RecordFunction(name):
                pass
    assert sorted((name, op) for _, _, name, _, op, _ in device_records(prof)) == [
        ("Memset (Device)", "fourth"),
        ("kernel_on_0", "first"),
        ("kernel_on_0", "third"),
        ("kernel_on_1", "second"),
    ]


def test_no_recording_holds_a_path_or_an_absolute_date() -> None:
    for path in FILES:
        assert re.findall(rb"/(?:home|root|Users|work|tmp)\b", path.read_bytes()) == []
        recording = load(path)
        stamps = [call.end_ns for session in recording.sessions for call in session.hooks]
        assert max(stamps) < 2 * 10**9
        threads = [batch.thread_id for session in recording.sessions for batch in session.batches]
        assert np.unique(np.concatenate(threads)).max() <= 2**22 + 1
