"""A device's clock becomes Unix time, within the uncertainty that the fit states."""

from __future__ import annotations

import json

import numpy as np
import pytest

from devprof.clock import Fit
from devprof.clock.rate import Rate
from devprof.contract import ClockDomain, ClockSample
from devprof.errors import CaptureError, UsageError

NOW_NS = 1_790_000_000_000_000_000
SECOND_NS = 10**9
NS_CLOCK = ClockDomain("dev")


def _burst(at_ns: int, ticks: int, *, bracket_ns: int = 100, n: int = 1, ticks_per_ns: int = 1) -> list[ClockSample]:
    """Readings exactly in the middle of their brackets."""
    return [
        ClockSample(
            at_ns + i * 200 - bracket_ns // 2, ticks + i * 200 * ticks_per_ns, at_ns + i * 200 + bracket_ns // 2
        )
        for i in range(n)
    ]


def _convert(fit: Fit, *ticks: int) -> list[int]:
    return fit.to_unix_ns(np.array(ticks, dtype=np.int64)).tolist()


def test_two_bursts_give_offset_drift_and_a_bound() -> None:
    # over 1000 s the device counts 20 ms less than the host
    samples = _burst(NOW_NS, 5_000, n=5) + _burst(NOW_NS + 1000 * SECOND_NS, 5_000 + 999_980_000_000, n=5)
    fit = Fit.from_samples(samples, NS_CLOCK)
    assert _convert(fit, 5_000, 5_000 + 499_990_000_000, 5_000 + 999_980_000_000) == [
        NOW_NS,
        NOW_NS + 500 * SECOND_NS,
        NOW_NS + 1000 * SECOND_NS,
    ]
    assert (fit.n_samples, fit.n_bursts, fit.warnings) == (10, 2, ())
    assert fit.drift == pytest.approx(20.0004e-6, rel=1e-6)
    assert 50 <= fit.uncertainty_ns <= 55


def test_a_clock_without_drift_is_converted_in_integers() -> None:
    fit = Fit.from_samples(_burst(NOW_NS, 0) + _burst(NOW_NS + SECOND_NS, SECOND_NS), NS_CLOCK)
    assert (fit.rate, fit.drift) == (Rate(1, 0.0), 0.0)
    assert _convert(fit, 1, 2**60 + 1) == [NOW_NS + 1, NOW_NS + 2**60 + 1]


def test_one_burst_uses_the_nominal_rate_and_says_so() -> None:
    fit = Fit.from_samples(_burst(NOW_NS, 2_400, n=5), ClockDomain("dev", 24e6))
    assert _convert(fit, 2_400, 2_400 + 24_000_000) == [NOW_NS, NOW_NS + SECOND_NS]
    assert fit.warnings == ("one burst of samples only: the nominal rate is used, and drift is unknown",)


def test_start_and_stop_within_a_millisecond_are_one_burst_and_no_doubt() -> None:
    samples = _burst(NOW_NS, 2_400, n=5) + _burst(NOW_NS + 50_000, 52_400, n=5)
    fit = Fit.from_samples(samples, NS_CLOCK)
    assert (fit.n_bursts, fit.warnings) == (1, ())
    assert _convert(fit, 2_400, 52_400) == [NOW_NS, NOW_NS + 50_000]


def test_a_virtual_clock_is_anchored_at_the_sessions_start_and_exact() -> None:
    domain = ClockDomain("virtual", virtual=True)
    samples = [
        ClockSample(NOW_NS, 1_000, NOW_NS + 50_000),
        ClockSample(NOW_NS + SECOND_NS, 77_000, NOW_NS + SECOND_NS + 9),
    ]
    fit = Fit.from_samples(samples, domain, session_start_ns=NOW_NS - 5)
    assert _convert(fit, 1_000, 1_001, 501_000) == [NOW_NS - 5, NOW_NS - 4, NOW_NS - 5 + 500_000]
    assert (fit.uncertainty_ns, fit.drift, fit.warnings) == (0, 0.0, ())
    assert _convert(Fit.from_samples(samples, domain), 1_000) == [NOW_NS]


def test_without_a_sample_ticks_have_no_time() -> None:
    backwards = [ClockSample(10, 5, 9)]
    with pytest.raises(
        CaptureError, match=r"clock 'dev' has no usable sample \(1 taken\).*sample_clock\(\) that works"
    ):
        Fit.from_samples(backwards, NS_CLOCK)
    with pytest.raises(CaptureError, match=r"no usable sample \(0 taken\)"):
        Fit.from_samples([], ClockDomain("dev", virtual=True))


@pytest.mark.parametrize("frequency", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_not_positive_is_refused(frequency: float) -> None:
    with pytest.raises(UsageError, match="ticks per second; expected more than 0"):
        Fit.from_samples(_burst(NOW_NS, 0), ClockDomain("dev", frequency))


def test_ticks_beyond_int64_are_refused() -> None:
    with pytest.raises(UsageError, match="read beyond int64, which batches cannot hold"):
        Fit.from_samples([ClockSample(NOW_NS, 2**63, NOW_NS + 10)], NS_CLOCK)


def test_a_clock_that_was_set_is_said_with_its_size() -> None:
    samples = [s for i in range(6) for s in _burst(NOW_NS + i * SECOND_NS + (i > 2) * 250_000_000, i * SECOND_NS)]
    fit = Fit.from_samples(samples, NS_CLOCK)
    assert (
        fit.warnings[0] == "a clock was set between two samples: the host's jumped by +250000.0 us against the device's"
    )
    # durations are right all the same, and times are right on one side of the step
    assert float(fit.rate) == 1.0
    assert _convert(fit, 0, 2 * SECOND_NS) == [NOW_NS, NOW_NS + 2 * SECOND_NS]
    assert fit.uncertainty_ns > 250_000_000


def test_samples_off_the_line_are_said_and_widen_the_bound() -> None:
    # 200 us in one second is less than the fastest slew, so no step is claimed
    samples = (
        _burst(NOW_NS, 0)
        + _burst(NOW_NS + SECOND_NS + 200_000, SECOND_NS)
        + _burst(NOW_NS + 2 * SECOND_NS, 2 * SECOND_NS)
    )
    fit = Fit.from_samples(samples, NS_CLOCK)
    assert len(fit.warnings) == 1
    assert fit.warnings[0].startswith("the samples lie off the line by up to 133.")
    assert fit.uncertainty_ns > 133_000


def test_a_burst_that_lies_is_counted_and_does_not_move_the_others() -> None:
    samples = [s for i in range(8) for s in _burst(NOW_NS + i * SECOND_NS, i * SECOND_NS + (i == 3) * 700_000)]
    fit = Fit.from_samples(samples, NS_CLOCK)
    assert abs(_convert(fit, 7 * SECOND_NS)[0] - (NOW_NS + 7 * SECOND_NS)) <= 1
    assert "1 of 8 bursts contradict the others and do not count" in fit.warnings
    assert fit.uncertainty_ns > 700_000


def test_a_wrong_nominal_rate_is_said_and_the_measured_one_is_used() -> None:
    fit = Fit.from_samples(_burst(NOW_NS, 0) + _burst(NOW_NS + SECOND_NS, 1_000_000), ClockDomain("dev", 1e9))
    assert abs(_convert(fit, 500_000)[0] - (NOW_NS + SECOND_NS // 2)) <= 1
    (warning,) = fit.warnings
    assert warning == (
        "the device's clock is +999000000 ppm off its nominal rate: "
        "ticks_per_second is wrong, or a clock was set during the session"
    )


@pytest.mark.parametrize(
    ("second_ticks", "warning"),
    [
        (1_000, "the device's clock stood still between samples: is it running?"),
        (-SECOND_NS, "the device's clock runs against the host's: the nominal rate is used, times are guesses"),
    ],
)
def test_a_clock_that_cannot_be_fitted_falls_back_to_its_nominal_rate(second_ticks: int, warning: str) -> None:
    fit = Fit.from_samples(_burst(NOW_NS, 1_000) + _burst(NOW_NS + SECOND_NS, second_ticks), NS_CLOCK)
    assert fit.warnings[-1] == warning
    assert fit.rate == Rate(1, 0.0)
    assert fit.uncertainty_ns >= SECOND_NS


def test_the_description_is_json_and_complete() -> None:
    samples = _burst(NOW_NS, 0) + _burst(NOW_NS + SECOND_NS, SECOND_NS)
    description = Fit.from_samples(samples, NS_CLOCK).describe()
    assert json.loads(json.dumps(description)) == {
        "clock": "dev",
        "virtual": False,
        "ticks_per_second": 1e9,
        "reference_ticks": SECOND_NS,
        "reference_unix_ns": NOW_NS + SECOND_NS,
        "drift_ppm": 0.0,
        "uncertainty_ns": 52,
        "samples": 2,
        "bursts": 2,
        "warnings": [],
    }
