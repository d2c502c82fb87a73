"""The account adds up, and says in words what a user should know."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from devprof.capture import PluginLedger, SessionReport
from devprof.capture.ledger import Part
from devprof.capture.verdict import HOOK_RETURNS, PROCESS_ENDS, SESSION_ENDS, SetAside
from devprof.model.reasons import NOT_OF_THE_WINDOW


def _ledger() -> PluginLedger:
    return PluginLedger(
        "demo",
        emitted=10,
        dropped=Counter({"before window": 2, "buffer full": 3}),
        rejected=Counter({"no timestamp": 1}),
        notes=Counter({"unlinked": 4}),
        lost_unknown=["ring overrun"],
        errors=["driver too old"],
        failures=["plugin 'demo', session.errors: returned None"],
        set_aside=SetAside("session.errors", 1_700_000_000_123_000_000),
        device_work=8,
        linked=6,
        clock={"drift_ppm": 1.5},
    )


def test_what_was_produced_is_what_became_of_it() -> None:
    ledger = _ledger()
    assert (ledger.produced, ledger.lost) == (10 + 5 + 1, 3 + 1)


@pytest.mark.parametrize("reason", NOT_OF_THE_WINDOW)
def test_a_record_outside_the_window_is_dropped_and_not_lost(reason: str) -> None:
    ledger = PluginLedger("demo", dropped=Counter({reason: 5}))
    assert (ledger.produced, ledger.lost, ledger.clean) == (5, 0, True)


@pytest.mark.parametrize(
    "ledger",
    [
        PluginLedger("demo", dropped=Counter({"buffer full": 1})),
        PluginLedger("demo", rejected=Counter({"no timestamp": 1})),
        PluginLedger("demo", lost_unknown=["x"]),
        PluginLedger("demo", errors=["x"]),
        PluginLedger("demo", failures=["x"]),
    ],
)
def test_a_loss_or_a_failure_of_any_kind_is_not_clean(ledger: PluginLedger) -> None:
    assert not ledger.clean
    assert not SessionReport("torch", {"demo": ledger}, complete=True).clean


def test_the_account_is_json_and_complete() -> None:
    assert json.loads(json.dumps(_ledger().as_dict())) == {
        "produced": 16,
        "emitted": 10,
        "dropped": {"before window": 2, "buffer full": 3},
        "rejected": {"no timestamp": 1},
        "lost_unknown": ["ring overrun"],
        "device_work": 8,
        "linked": 6,
        "notes": {"unlinked": 4},
        "errors": ["driver too old"],
        "failures": ["plugin 'demo', session.errors: returned None"],
        "set_aside": {"hook": "session.errors", "at_ns": 1_700_000_000_123_000_000, "until": "the session ends"},
        "clock": {"drift_ppm": 1.5},
        "doubts": [],
    }


def test_the_account_in_words_has_a_line_for_everything() -> None:
    assert list(_ledger().lines()) == [
        "demo: produced 16 = emitted 10 + dropped 5 + rejected 1; 6 of 8 device records linked",
        "  dropped, before window: 2",
        "  dropped, buffer full: 3",
        "  rejected, no timestamp: 1",
        "  note, unlinked: 4",
        "  lost, number unknown: ring overrun",
        "  error: driver too old",
        "  error: plugin 'demo', session.errors: returned None",
        "  set aside at 2023-11-14 22:13:20.123 UTC in session.errors, until the session ends",
    ]


@pytest.mark.parametrize(
    ("until", "words"), [(SESSION_ENDS, "set aside"), (HOOK_RETURNS, "quarantined"), (PROCESS_ENDS, "quarantined")]
)
def test_a_verdict_is_on_the_rows_and_in_the_report_in_the_same_words(until: str, words: str) -> None:
    verdict = SetAside("session.stop", 1_000_000_000, until)
    ledger = PluginLedger("demo", set_aside=verdict)
    assert str(verdict) == f"{words} at 1970-01-01 00:00:01.000 UTC in session.stop, until {until}"
    assert ledger.row_label("") == f"{words} in session.stop: records may be missing"
    assert ledger.row_label("GPU 0") == f"GPU 0; {words} in session.stop: records may be missing"
    assert PluginLedger("demo").row_label("GPU 0") == "GPU 0"
    assert SessionReport("torch", {"demo": ledger}).has_verdict
    assert not SessionReport("torch", {"demo": PluginLedger("demo")}).has_verdict


def test_a_copy_of_the_account_does_not_change_with_it() -> None:
    ledger = _ledger()
    copy = json.dumps(ledger.as_dict())
    before = ledger.as_dict()
    ledger.dropped["late"] += 1
    ledger.errors.append("late")
    ledger.clock["late"] = 1
    assert json.dumps(before) == copy


# -- the session's report ---------------------------------------------------------------------------------------------


def test_a_complete_session_without_loss_is_clean_and_has_nothing_to_say() -> None:
    report = SessionReport("torch", {"demo": PluginLedger("demo", emitted=3, device_work=3, linked=3)}, complete=True)
    assert (report.clean, report.complaints()) == (True, [])


def test_what_came_twice_is_not_lost_but_said() -> None:
    ledger = PluginLedger("demo", emitted=21, rejected=Counter({"delivered twice": 10}))
    report = SessionReport("torch", {"demo": ledger}, complete=True)
    assert (ledger.produced, ledger.lost, ledger.clean, report.clean) == (31, 0, False, False)
    assert report.complaints() == ["demo: 10 of 31 records had been delivered already; each is in the trace once"]
    ledger.dropped["buffer full"], ledger.rejected["buffer full"] = 2, 1
    assert report.complaints()[0] == "demo: 3 of 34 records were lost (buffer full: 3)"


def test_a_session_that_is_not_complete_is_not_clean() -> None:
    assert not SessionReport("torch", {"demo": PluginLedger("demo")}).clean


def test_complaints_name_losses_with_their_reasons_and_failures_unless_a_warning_said_them() -> None:
    report = SessionReport("torch", {"demo": _ledger()}, complete=True, notes=["cut short"])
    assert report.complaints(warned=False) == [
        "cut short",
        "demo: 4 of 16 records were lost (buffer full: 3, no timestamp: 1)",
        "demo: an unknown number of records was lost (ring overrun)",
        "demo: driver too old",
    ]
    assert report.complaints() == [*report.complaints(warned=False), *report.ledgers["demo"].failures]


def test_device_work_without_any_link_is_a_complaint_with_the_likely_cause() -> None:
    ledgers = {"demo": PluginLedger("demo", emitted=5, device_work=4)}
    [complaint] = SessionReport("torch", ledgers, complete=True).complaints()
    assert complaint.startswith("demo: 0 of 4 device records linked to an op; most likely")


def test_where_the_host_records_no_ops_nothing_can_be_linked_and_nobody_complains() -> None:
    ledgers = {"demo": PluginLedger("demo", emitted=5, device_work=4)}
    report = SessionReport("torch", ledgers, complete=True, host_ops=False)
    assert (report.complaints(), report.clean) == ([], True)


def test_the_report_is_json_and_names_its_plugins() -> None:
    report = SessionReport("torch", {"demo": _ledger()}, start_ns=1, end_ns=2, complete=True, notes=["x"])
    assert json.loads(json.dumps(report.as_dict())) == {
        "host": "torch",
        "start_ns": 1,
        "end_ns": 2,
        "complete": True,
        "notes": ["x"],
        "plugins": {"demo": _ledger().as_dict()},
    }


def test_the_report_reads_as_its_ledgers_and_notes() -> None:
    report = SessionReport("torch", {"demo": PluginLedger("demo", emitted=1)}, notes=["cut short"])
    assert str(report) == (
        "demo: produced 1 = emitted 1 + dropped 0 + rejected 0; 0 of 0 device records linked\ncut short"
    )
    assert str(SessionReport("torch")) == "no devprof plugin took part"


def test_records_that_a_host_gave_up_on_are_dropped_with_the_reason() -> None:
    """The account still closes: what has no reason of its own is lost with one, and what is in the trace stays emitted."""
    none = PluginLedger("toy", emitted=5, device_work=3, linked=2)
    none.give_up("host failed", produced=5)
    delivered = PluginLedger("toy", dropped=Counter({"before window": 4}))
    delivered.give_up("host failed", produced=9)
    half = PluginLedger("toy", emitted=5, device_work=3, linked=2, rejected=Counter({"no timestamp": 1}))
    half.give_up("host failed", 6, Part(records=3, device_work=2, linked=1))
    whole = PluginLedger("toy", emitted=5, device_work=3, linked=2)
    whole.give_up("host failed", 5, Part(5, 3, 2))
    assert [(one.produced, one.emitted, one.device_work, one.linked) for one in (none, delivered, half, whole)] == [
        (5, 0, 0, 0),
        (9, 0, 0, 0),
        (6, 3, 2, 1),
        (5, 5, 3, 2),
    ]
    assert [one.dropped for one in (none, delivered, half, whole)] == [
        {"host failed": 5},
        {"before window": 4, "host failed": 5},
        {"host failed": 2},
        {},
    ]


def test_records_that_a_host_left_out_are_no_longer_emitted() -> None:
    ledger = PluginLedger("toy", emitted=5, device_work=5, linked=4)
    ledger.leave_out("before window", 0)
    assert (ledger.emitted, ledger.dropped) == (5, {})
    ledger.leave_out("before window", 2)
    assert (ledger.produced, ledger.emitted, ledger.device_work, ledger.linked) == (5, 3, 3, 3)
    assert (ledger.dropped, ledger.clean) == ({"before window": 2}, True)
