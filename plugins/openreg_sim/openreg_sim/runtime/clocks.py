"""Clocks: the host's (real or virtual), and the device's own, which only roughly agrees with it."""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["DeviceClock", "HostClock", "RealClock", "VirtualClock"]

SPIN_NS = 150_000
"""A sleep may oversleep by about this much, so the end of a wait is spent polling."""

NS_PER_S = 1_000_000_000


class HostClock(Protocol):
    """The host's side of the timeline."""

    virtual: bool
    """True if time passes only by calls, so that a program gets the same times on every run."""

    def now_ns(self) -> int:
        """Return the host's time."""

    def span_of_call(self, entered_ns: int, returned_ns: int, cost_ns: int) -> tuple[int, int]:
        """Return when a call began and ended.

        Args:
            entered_ns, returned_ns: when it did so by a real clock.
            cost_ns: how long the host would be busy with it by the cost model.
        """

    def wait_until_ns(self, moment_ns: int) -> int:
        """Let host time reach `moment_ns`, and return the time it is then; never earlier than `moment_ns`."""


class RealClock:
    """Host time is `time.time_ns`; waiting really waits.

    Args:
        now_ns: reads the clock, Unix ns.
        sleep_s: sleeps for that many seconds.
    """

    virtual = False

    def __init__(
        self, *, now_ns: Callable[[], int] = time.time_ns, sleep_s: Callable[[float], None] = time.sleep
    ) -> None:
        self.now_ns = now_ns
        self._sleep_s = sleep_s

    def span_of_call(self, entered_ns: int, returned_ns: int, cost_ns: int) -> tuple[int, int]:
        """Return the real times; see `HostClock`."""
        return entered_ns, returned_ns

    def wait_until_ns(self, moment_ns: int) -> int:
        """Sleep, then poll; see `HostClock`."""
        while (left_ns := moment_ns - (now_ns := self.now_ns())) > 0:
            if left_ns > SPIN_NS:
                self._sleep_s((left_ns - SPIN_NS) / NS_PER_S)
        return now_ns


class VirtualClock:
    """Host time is a number that calls move on by their modelled cost, and waits by what they wait for.

    Calls of several threads share it, in the order in which they happen.
    """

    virtual = True

    def __init__(self, start_ns: int = NS_PER_S) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        """Return the virtual time."""
        return self._now_ns

    def span_of_call(self, entered_ns: int, returned_ns: int, cost_ns: int) -> tuple[int, int]:
        """Spend the modelled cost; see `HostClock`."""
        begin_ns = self._now_ns
        self._now_ns = begin_ns + cost_ns
        return begin_ns, self._now_ns

    def wait_until_ns(self, moment_ns: int) -> int:
        """Jump; see `HostClock`."""
        self._now_ns = max(self._now_ns, moment_ns)
        return self._now_ns


class DeviceClock:
    """The counter that stamps device work: another zero, a rate that is slightly off, and now and then a step.

    ``ticks = offset + floor((host_ns - origin_ns) * rate / 1e9) + steps so far``, with the true rate a whole number of
    ticks per second, so that scalars, arrays and the inverse agree exactly.

    Args:
        ticks_per_second: nominal rate, which is all that a client is told; at most 9e9.
        offset_ticks: reading at `origin_ns`.
        drift_ppm: how much faster than nominal it really runs.
        read_jitter_ticks: a reading comes back up to this many ticks late (stamps of records do not).
        seed: of the jitter.
        origin_ns: host time of the zero.
    """

    def __init__(
        self,
        *,
        ticks_per_second: int = NS_PER_S,
        offset_ticks: int = 0,
        drift_ppm: float = 0.0,
        read_jitter_ticks: int = 0,
        seed: int = 0,
        origin_ns: int = 0,
    ) -> None:
        self.ticks_per_second = ticks_per_second
        self.true_rate = ticks_per_second + round(ticks_per_second * drift_ppm * 1e-6)
        self.offset_ticks = offset_ticks
        self.origin_ns = origin_ns
        self._read_jitter_ticks = read_jitter_ticks
        self._random = random.Random(seed)
        self._step_times: list[int] = []
        self._step_sums: list[int] = [0]

    def step(self, at_ns: int, ticks: int) -> None:
        """Let the counter jump by `ticks` at host time `at_ns`, which must not lie before an earlier step."""
        self._step_times.append(at_ns)
        self._step_sums.append(self._step_sums[-1] + ticks)

    def ticks_at(self, host_ns: int) -> int:
        """Return what the counter shows at a host time."""
        seconds, rest_ns = divmod(host_ns - self.origin_ns, NS_PER_S)
        run = seconds * self.true_rate + rest_ns * self.true_rate // NS_PER_S
        return self.offset_ticks + run + self._step_sums[bisect_right(self._step_times, host_ns)]

    def ticks_of(self, host_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return what the counter shows at each host time. Args and result: shape (n,), int64."""
        seconds, rest_ns = np.divmod(host_ns - self.origin_ns, NS_PER_S)
        run = seconds * self.true_rate + rest_ns * self.true_rate // NS_PER_S
        steps = np.array(self._step_sums)[np.searchsorted(self._step_times, host_ns, side="right")]
        return np.asarray(self.offset_ticks + run + steps, dtype=np.int64)

    def host_ns_of(self, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the earliest host time at which the counter shows each value. Args and result: shape (n,), int64.

        Exact for stamps made by `ticks_of` where the true rate is at least one tick per ns.

        Raises:
            ValueError: the counter has stepped, so that a value need not have one host time.
        """
        if self._step_times:
            raise ValueError(f"the device clock has stepped {len(self._step_times)} time(s), it has no inverse")
        seconds, rest = np.divmod(ticks - self.offset_ticks, self.true_rate)
        rest_ns = -(-rest * NS_PER_S // self.true_rate)
        return np.asarray(self.origin_ns + seconds * NS_PER_S + rest_ns, dtype=np.int64)

    def read(self, host_ns: int) -> int:
        """Return what a client reads at a host time: `ticks_at`, and the jitter of a reading."""
        late = self._random.randint(0, self._read_jitter_ticks) if self._read_jitter_ticks else 0
        return self.ticks_at(host_ns) + late
