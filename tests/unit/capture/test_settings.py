"""Limits come from the environment where it makes sense, and from here where it does not, with a word."""

from __future__ import annotations

import math

import pytest

from devprof.capture.settings import budget_s, record_limit


def test_without_a_word_from_the_environment_the_defaults_hold() -> None:
    assert (budget_s(), record_limit()) == (30.0, 10_000_000)


@pytest.mark.parametrize(("text", "seconds"), [("2.5", 2.5), ("1e3", 1000.0), (" 7 ", 7.0), ("inf", math.inf)])
def test_a_number_of_seconds_is_taken(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_HOOK_TIMEOUT_S", text)
    assert budget_s() == seconds


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_value_is_no_value(
    text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DEVPROF_HOOK_TIMEOUT_S", text)
    monkeypatch.setenv("DEVPROF_MAX_RECORDS", text)
    assert (budget_s(), record_limit(), caplog.messages) == (30.0, 10_000_000, [])


@pytest.mark.parametrize("text", ["soon", "nan", "0", "-1", "-inf", "30s"])
def test_a_budget_that_makes_no_sense_is_said_and_not_used(
    text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DEVPROF_HOOK_TIMEOUT_S", text)
    assert budget_s() == 30.0
    assert caplog.messages == [f"DEVPROF_HOOK_TIMEOUT_S is {text!r}; expected a number above 0, 30.0 is used"]


@pytest.mark.parametrize("text", ["many", "1e6", "0", "-5", "nan", "1.5"])
def test_a_limit_that_makes_no_sense_is_said_and_not_used(
    text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DEVPROF_MAX_RECORDS", text)
    assert record_limit() == 10_000_000
    assert caplog.messages == [f"DEVPROF_MAX_RECORDS is {text!r}; expected a number above 0, 10000000 is used"]


def test_a_limit_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_MAX_RECORDS", str(2**70))
    assert record_limit() == 2**70
