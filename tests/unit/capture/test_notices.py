"""Warnings point at the user's line and break nothing."""

from __future__ import annotations

import logging
import warnings

import pytest

from devprof.capture import SessionReport, attach, last_report, report_of, tell, users_place, warn_if_lossy
from devprof.errors import DevprofWarning, LossWarning, UsageError


def test_a_warning_points_at_the_line_outside_of_devprof() -> None:
    with pytest.warns(DevprofWarning, match="words") as caught:
        tell("words", DevprofWarning)
    assert caught[0].filename == __file__
    assert users_place().startswith(f"at {__file__}:")


def test_where_warnings_are_errors_it_is_logged_and_the_program_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, logger="devprof"):
        warnings.simplefilter("error")
        tell("words", LossWarning)
    assert caplog.messages == ["words"]


def test_a_report_that_has_something_to_say_says_it_in_one_warning_and_a_clean_one_nothing() -> None:
    report = SessionReport("python", complete=True)
    warn_if_lossy(report)
    report.notes += ["first", "second"]
    with pytest.warns(LossWarning, match=r"^devprof: first; second$") as caught:
        warn_if_lossy(report)
    assert len(caught) == 1


class Profile:
    """Stands for a profile; `profiler` is the one inside, as torch's have."""

    def __init__(self, inner: object = None) -> None:
        self.profiler = inner


def test_a_report_is_found_by_the_profile_or_by_the_one_inside() -> None:
    inner = Profile()
    outer, report = Profile(inner), SessionReport("torch")
    attach(inner, report)
    assert report_of(inner) is report_of(outer) is last_report() is report


@pytest.mark.parametrize("what", [Profile(), object(), None, 3, {}])
def test_what_has_no_report_is_told_why(what: object) -> None:
    with pytest.raises(UsageError, match=f"no devprof report belongs to this {type(what).__name__}"):
        report_of(what)
