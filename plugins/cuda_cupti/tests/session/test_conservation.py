"""Whatever CUPTI writes into its records, each of them is in the trace or counted by a reason: none costs another."""

from __future__ import annotations

import ctypes as c
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

import devprof
from plugins.cuda_cupti.tests.structs import pack, struct_of

KERNEL, MEMCPY, MEMSET, DRIVER, RUNTIME, OVERHEAD, MEMCPY2 = 10, 1, 2, 4, 5, 17, 22
EVENT, SYNC, EXTERNAL, MEMORY = 36, 38, 39, 49
_NUMBERS = (0, 1, 2, 3)


def _value(rng: random.Random, bits: int) -> int:
    return rng.choice([*_NUMBERS, rng.getrandbits(16), rng.getrandbits(bits), (1 << bits) - 1, 1 << (bits - 1)])


def _record(rng: random.Random, kind: int, now: int, name: int) -> bytes:
    """Return a record with numbers at the borders of what its fields hold, and mostly with times of now."""
    struct = struct_of(kind, "13.0")
    assert struct is not None
    sizes = {field: c.sizeof(of) for field, of in struct._fields_[1:] if not issubclass(of, c.Array)}  # type: ignore[misc, arg-type]
    values = {field: _value(rng, 8 * size) for field, size in sizes.items()}
    if rng.random() < 0.85:
        start = now + rng.randrange(10**6)
        times = {"start": start, "end": start + rng.randrange(1000), "timestamp": start, "deviceTimestamp": start}
        values |= {field: value for field, value in times.items() if field in values}
    for field in ("contextId", "deviceId"):
        if field in values and rng.random() < 0.8:
            values[field] = rng.choice(_NUMBERS)
    values |= {"name": rng.choice([0, name])} if kind == KERNEL else {}
    # not 6 and 7, static memory of modules, which is left out on purpose
    values |= {"memoryKind": rng.choice([1, 3, 99])} if kind == MEMORY else {}
    return pack(kind, "13.0", **values)


@pytest.mark.parametrize("seed", range(12))
def test_every_record_that_was_written_is_shown_or_counted(
    seed: int, stand_in: Any, profile: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVPROF_SYNC_EVENTS", "1")
    rng, name = random.Random(seed), c.create_string_buffer(b"k")
    shown = [KERNEL, MEMCPY, MEMSET, DRIVER, RUNTIME, OVERHEAD, MEMCPY2, EVENT, SYNC, *([MEMORY] if seed % 2 else [])]
    kinds = rng.choices([*shown, EXTERNAL], k=400)
    with profile(profile_memory=bool(seed % 2)) as prof, devprof.record_function("w"):
        now = time.time_ns()
        for kind in kinds:
            stand_in.raw(_record(rng, kind, now, c.addressof(name)))
    ledger = prof.report.ledgers["stand-in"]
    noise = prof.trace.facts["plugin_metadata"]["stand-in"]["CUPTI noise calls left out"]
    told = ledger.emitted + sum(ledger.dropped.values()) + sum(ledger.rejected.values()) + noise
    assert (told, ledger.lost_unknown, ledger.errors, ledger.failures) == (400 - kinds.count(EXTERNAL), [], [], [])
    assert ledger.emitted > 50


def test_one_record_that_nothing_can_hold_is_refused_alone(
    stand_in: Any, profile: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVPROF_SYNC_EVENTS", "1")
    with profile() as prof:
        for _ in range(1000):
            stand_in.kernel()
        now = time.time_ns()
        stand_in.raw(pack(EVENT, "13.0", deviceTimestamp=now, deviceId=(1 << 32) - 1, contextId=5, correlationId=7))
        stand_in.raw(pack(SYNC, "13.0", type=4, start=now, end=now + 10, contextId=5))
    ledger = prof.report.ledgers["stand-in"]
    assert (ledger.emitted, dict(ledger.rejected)) == (2001, {"negative device index": 1})
    assert (dict(ledger.dropped), ledger.failures) == ({}, [])
