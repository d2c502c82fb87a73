"""A line through bursts: exact where they agree, unmoved by one that lies, and honest about both."""

from __future__ import annotations

import numpy as np
import pytest

from devprof.clock import Burst
from devprof.clock.line import Points, fit_line, points_of, steps_in
from devprof.clock.rate import Rate

SECOND_NS = 1e9


def _points(y_ns: list[float], half_width_ns: float | list[float] = 100.0) -> Points:
    widths = np.broadcast_to(np.array(half_width_ns, dtype=np.float64), (len(y_ns),)).copy()
    return Points(np.arange(len(y_ns)) * SECOND_NS, np.array(y_ns), widths)


def test_bursts_become_differences_without_losing_a_digit() -> None:
    base = 1_790_000_000_000_000_000
    bursts = [Burst(2**60, base, 10.0, 5), Burst(2**60 + 24_000_001, base + 1_000_000_043, 0.2, 5)]
    points = points_of(bursts, bursts[0], Rate.nominal(24e6))
    # 24,000,001 ticks of 41 2/3 ns are 1,000,000,041 2/3 ns
    assert points.x_ns.tolist() == [0.0, pytest.approx(1_000_000_041.6666666, abs=1e-6)]
    assert points.y_ns.tolist() == [0.0, pytest.approx(1.3333333, abs=1e-6)]
    assert points.half_width_ns.tolist() == [10.0, 1.0]


def test_points_on_a_line_give_the_line_with_the_width_as_its_bound() -> None:
    line = fit_line(_points([7.0, 57.0, 107.0]))
    assert (line.intercept_ns, line.drift) == (pytest.approx(7.0), pytest.approx(50 / SECOND_NS))
    assert line.contradiction_ns == 0.0
    assert line.n_contradicting == 0
    # at an end the three points count with 5/6, 1/3 and -1/6
    assert line.uncertainty_ns == pytest.approx(100 * (5 / 6 + 1 / 3 + 1 / 6))


def test_two_points_are_bounded_by_the_wider_of_them() -> None:
    assert fit_line(_points([0.0, 50.0], [30.0, 80.0])).uncertainty_ns == pytest.approx(80.0)


def test_a_wide_point_hardly_pulls_and_hardly_widens() -> None:
    line = fit_line(_points([0.0, 400_000.0, 0.0, 0.0], [100.0, 1_000_000.0, 100.0, 100.0]))
    assert abs(line.intercept_ns) < 1
    assert abs(line.drift) < 1e-9
    assert line.uncertainty_ns < 200


def test_a_narrow_point_that_lies_does_not_pull_but_counts_as_doubt() -> None:
    line = fit_line(_points([0.0, 0.0, 50_000.0, 0.0, 0.0, 0.0]))
    assert (line.intercept_ns, line.drift, line.n_contradicting) == (pytest.approx(0), pytest.approx(0), 1)
    assert line.contradiction_ns == pytest.approx(49_900.0)
    assert line.uncertainty_ns > 49_900


def test_the_worst_error_that_the_widths_allow_is_within_the_bound() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        widths = rng.uniform(1, 1000, size=5)
        truth = rng.uniform(-1, 1) * 1e-6
        points = _points([0.0] * 5, widths.tolist())
        points = Points(points.x_ns, truth * points.x_ns + widths * rng.choice([-1, 1], size=5), widths)
        line = fit_line(points)
        off = line.intercept_ns + (line.drift - truth) * points.x_ns
        assert np.abs(off).max() <= line.uncertainty_ns + 1e-6


@pytest.mark.parametrize(
    ("y_ns", "steps"),
    [
        ([0.0, 0.0, 0.0, 0.0], []),
        ([0.0, 0.0, 5e6, 5e6], [5e6]),
        ([0.0, 0.0, -5e6, -5e6, 0.0], [-5e6, 5e6]),
        ([0.0, 5e6, 5e6], [5e6]),
        ([0.0, 400_000.0, 800_000.0, 1_200_000.0], []),
        ([0.0, 5e6], []),
    ],
    ids=["none", "one", "there and back", "three points", "drift", "two points tell nothing"],
)
def test_a_clock_that_was_set_shows_as_a_step_and_a_drift_does_not(y_ns: list[float], steps: list[float]) -> None:
    assert steps_in(_points(y_ns)) == pytest.approx(steps)


def test_a_step_between_many_points_leaves_the_line_on_the_larger_side() -> None:
    for y_ns, left_out in (([0.0] * 7 + [8e6] * 3, 3), ([0.0] * 5 + [8e6] * 5, 5), ([0.0, 0.0, 8e6], 1)):
        line = fit_line(_points(y_ns))
        assert (line.intercept_ns, line.drift) == (pytest.approx(0.0), pytest.approx(0.0))
        assert (line.contradiction_ns, line.n_contradicting) == (pytest.approx(8e6 - 100), left_out)
        assert line.uncertainty_ns > 8e6


def test_of_three_points_off_the_line_by_less_than_a_jump_all_count() -> None:
    line = fit_line(_points([0.0, 200_000.0, 0.0]))
    assert (line.n_contradicting, line.contradiction_ns) == (0, pytest.approx(200_000 * 2 / 3 - 100))
