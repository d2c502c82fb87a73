"""The host's ticks as Unix time: the tightest pair at the start, and what the stop reveals."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from devprof.clock import HostClock
from devprof.errors import CaptureError

UNIX_AT_ZERO = 1_790_000_000_000_000_000
SECOND = 10**9


@dataclass
class World:
    """True time, and the two clocks that show it.

    A reading takes what `costs_ns` says for the next ones, then `cost_ns`, of which every fourth is 1 ns longer.
    """

    now: int = 0
    cost_ns: int = 40
    costs_ns: list[int] = field(default_factory=list)
    set_by_ns: int = 0
    unix_step_ns: int = 1
    tick_step_ns: int = 1
    n_read: int = 0

    def ticks(self) -> int:
        """Read the ticks."""
        self._pass()
        return self.now // self.tick_step_ns * self.tick_step_ns

    def unix_ns(self) -> int:
        """Read the system's clock."""
        self._pass()
        return (UNIX_AT_ZERO + self.now + self.set_by_ns) // self.unix_step_ns * self.unix_step_ns

    def _pass(self) -> None:
        self.n_read += 1
        self.now += self.costs_ns.pop(0) if self.costs_ns else self.cost_ns + (self.n_read % 4 == 0)

    def clock(self, n_pairs: int = 8) -> HostClock:
        """Start a session's clock in this world."""
        return HostClock.started(self.ticks, self.unix_ns, name="toy ticks", n_pairs=n_pairs)


def to_unix(clock: HostClock, *ticks: int) -> list[int]:
    return [int(time_ns) for time_ns in clock.to_unix_ns(np.array(ticks, dtype=np.int64))]


def test_ticks_become_unix_time_and_keep_their_differences() -> None:
    clock = World().clock()
    assert to_unix(clock, 0, 1, 10**15) == [UNIX_AT_ZERO, UNIX_AT_ZERO + 1, UNIX_AT_ZERO + 10**15]


def test_the_tightest_pair_counts_and_states_how_far_off_it_may_be() -> None:
    """The first pair is asymmetric and wide, the third symmetric and tight."""
    wide, tight = [40, 10, 2000], [40, 10, 10]
    clock = World(costs_ns=[*wide, *wide, *tight, *wide]).clock(n_pairs=4)
    assert to_unix(clock, 0) == [UNIX_AT_ZERO]
    assert clock.uncertainty_ns == 10 + 10  # half the bracket, and the clocks count in steps of 10 here
    assert clock.doubts == ()


def test_the_truth_is_within_the_uncertainty_wherever_a_reading_was_held_up() -> None:
    for costs in itertools.product([10, 310, 970], repeat=3):
        world = World(costs_ns=[101, *costs[1:], 7, *costs])
        clock = world.clock(n_pairs=2)
        assert abs(to_unix(clock, 0)[0] - UNIX_AT_ZERO) <= clock.uncertainty_ns


def test_now_is_on_the_same_clock_and_does_not_follow_the_systems() -> None:
    world = World()
    clock = world.clock()
    world.set_by_ns = -5 * SECOND
    assert clock.now_ns() == UNIX_AT_ZERO + world.now


def test_a_quiet_session_has_nothing_to_say() -> None:
    world = World()
    clock = world.clock()
    world.now += 3600 * SECOND
    clock.finish()
    assert clock.describe() == {
        "clock": "toy ticks",
        "reference_ticks": 80,
        "reference_unix_ns": UNIX_AT_ZERO + 80,
        "uncertainty_ns": 40 + 1,
        "moved_ns": 0,
        "finished": True,
        "samples": 16,
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("moved_ns", "after_s", "words"),
    [
        (5_000_000, 1, "jumped by +5000.0 us: it was set, or the machine slept"),
        (-3600 * SECOND, 60, "jumped by -3600000000.0 us: it was set, or the machine slept"),
        (400_000, 10, "drifted by +400.0 us in 10.0 s: it was slewed, or the two run at different rates"),
        (-2_000, 100, "drifted by -2.0 us in 100.0 s: it was slewed, or the two run at different rates"),
    ],
)
def test_a_system_clock_that_was_moved_during_the_session_is_called_out_with_the_size(
    moved_ns: int, after_s: int, words: str
) -> None:
    world = World()
    clock = world.clock()
    assert clock.describe()["finished"] is False
    world.now += after_s * SECOND
    world.set_by_ns = moved_ns
    clock.finish()
    assert clock.moved_ns == moved_ns
    assert clock.doubts == (f"the system's clock {words}; times in the trace go on as they began",)
    assert clock.describe()["warnings"] == list(clock.doubts)
    assert clock.uncertainty_ns == abs(moved_ns) + 40 + 1
    assert to_unix(clock, 7) == [UNIX_AT_ZERO + 7]


def test_a_move_that_the_readings_cannot_tell_from_jitter_is_none() -> None:
    world = World()
    clock = world.clock()
    world.set_by_ns = 900
    clock.finish()
    assert (clock.moved_ns, clock.doubts) == (0, ())


def test_a_coarse_system_clock_widens_the_uncertainty_and_is_called_out() -> None:
    world = World(now=123_456, unix_step_ns=5_000)
    clock = world.clock(n_pairs=256)
    assert clock.doubts == (
        "the system's clock counts in steps of 5.0 us or so: shorter times and their order are guesses",
    )
    assert 3_500 < UNIX_AT_ZERO - to_unix(clock, 0)[0] <= clock.uncertainty_ns == 5_000 + 40


def test_a_clock_that_stands_still_while_the_other_moves_is_coarse_too() -> None:
    clock = World(cost_ns=400, unix_step_ns=1_000_000).clock(n_pairs=64)
    assert clock.doubts == (
        "the system's clock counts in steps of 76.4 us or so: shorter times and their order are guesses",
    )
    assert clock.uncertainty_ns == 400 + 76_448


def test_coarse_ticks_are_called_out_by_their_name() -> None:
    clock = World(cost_ns=400, tick_step_ns=16_000).clock(n_pairs=64)
    assert clock.doubts == ("toy ticks counts in steps of 16.0 us or so: shorter times and their order are guesses",)


def test_pairs_in_which_the_ticks_went_back_are_left_out_and_counted() -> None:
    clock = World(costs_ns=[500, 10, -30, 20, 5, 5]).clock(n_pairs=2)
    assert to_unix(clock, 0) == [UNIX_AT_ZERO]
    assert clock.doubts == ("toy ticks went back 1 time(s) while it was read",)


def test_ticks_that_always_run_backwards_cannot_time_anything() -> None:
    with pytest.raises(CaptureError, match="ran backwards in all of 3 readings"):
        World(cost_ns=-10).clock(n_pairs=3)


def test_the_real_clocks_agree_with_each_other() -> None:
    clock = HostClock.started()
    before, ticks, after = time.time_ns(), time.perf_counter_ns(), time.time_ns()
    clock.finish()
    assert before - clock.uncertainty_ns <= to_unix(clock, ticks)[0] <= after + clock.uncertainty_ns
    assert clock.describe()["clock"] == "perf_counter_ns"
