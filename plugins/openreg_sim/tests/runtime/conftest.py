"""What the runtime's tests share: a client of the activity API, clocks that a test turns by hand, random programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from openreg_sim import activity
from openreg_sim.ring import RING_DTYPE, CallKind
from openreg_sim.runtime import RealClock, Runtime, RuntimeConfig, use_runtime


class Client:
    """A client of the activity API that keeps everything it gets."""

    def __init__(self, buffer_bytes: int = 1 << 16, buffers: int = 1 << 30) -> None:
        self.buffer_bytes = buffer_bytes
        self.buffers = buffers
        self.completed: list[tuple[bytearray, int]] = []
        activity.orActivityRegisterCallbacks(self.requested, self.take)

    def requested(self) -> bytearray | None:
        if self.buffers == 0:
            return None
        self.buffers -= 1
        return bytearray(self.buffer_bytes)

    def take(self, buffer: bytearray, size_bytes: int) -> None:
        self.completed.append((buffer, size_bytes))

    @property
    def records(self) -> np.ndarray:
        return activity.orActivityRecords(self.completed)

    def of(self, kind: activity.ActivityKind) -> np.ndarray:
        return self.records[self.records["kind"] == kind]

    def correlations(self, kind: activity.ActivityKind) -> list[int]:
        return [int(number) for number in self.of(kind)["correlation"]]


class HandClock:
    """A host clock in the tests' hands: every reading costs a little, sleeping passes exactly."""

    def __init__(self, start_ns: int = 1_700_000_000_000_000_000, reading_ns: int = 100) -> None:
        self.time_ns = start_ns
        self.reading_ns = reading_ns
        self.slept_s: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None

    def now_ns(self) -> int:
        self.time_ns += self.reading_ns
        return self.time_ns

    def sleep_s(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.time_ns += round(seconds * 1e9)
        self.on_sleep()

    def clock(self) -> RealClock:
        return RealClock(now_ns=self.now_ns, sleep_s=self.sleep_s)


@pytest.fixture
def make_client() -> Callable[..., Client]:
    return Client


@pytest.fixture
def hand_clock() -> HandClock:
    return HandClock()


@pytest.fixture
def virtual() -> Iterator[Runtime]:
    """The process's runtime for this test: two devices, a virtual clock."""
    with use_runtime(Runtime(RuntimeConfig.virtual_clock())) as runtime:
        yield runtime


@pytest.fixture
def truth_columns() -> Callable[..., list[Any]]:
    """Picks columns of the truth as plain tuples, to compare whole values."""

    def pick(runtime: Runtime, *names: str) -> list[Any]:
        return [tuple(int(row[name]) for name in names) for row in runtime.ground_truth()]

    return pick


@pytest.fixture
def ring() -> Callable[..., np.ndarray]:
    """Makes ring records as the native device does: `count` launches, or what the given fields say."""

    def make(count: int = 1, **fields: Any) -> np.ndarray:
        records = np.zeros(count, RING_DTYPE)
        records["kind"] = CallKind.LAUNCH
        records["peer"] = -1
        for name, value in fields.items():
            records[name] = value
        return records

    return make
