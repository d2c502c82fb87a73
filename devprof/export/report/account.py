"""What is known of the capture itself: the account of what was lost, the findings of the rules, and the other facts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from devprof.export.report.markup import Markup, joined, tag
from devprof.export.report.tables import facts_table, table
from devprof.export.report.units import count_text, cut
from devprof.rules import Finding, Severity
from devprof.rules.accounts import missing_by_reason
from devprof.store import Trace

__all__ = ["facts_of", "findings_list", "ledger", "n_lost"]

_MOST_FINDINGS = 40
_MOST_FACTS = 60
_MOST_PLUGINS = 32
_COUNTS = ("produced", "emitted", "device_work", "linked")
_LOSSES = ("dropped", "rejected", "lost_unknown")
_WORDS = ("errors", "failures", "doubts", "notes")


def findings_list(findings: Sequence[Finding]) -> Markup:
    """Return what does not hold of the trace, the worst first."""
    if not findings:
        return tag("p", "Every rule holds.", class_="sub")
    ordered = sorted(findings, key=lambda one: -one.severity)
    items = (
        tag(
            "li",
            tag("b", one.severity.name.lower()),
            tag("code", one.rule),
            cut(one.says, 600),
            class_=_class(one.severity),
        )
        for one in ordered[:_MOST_FINDINGS]
    )
    rest = len(ordered) - _MOST_FINDINGS
    note = tag("p", f"{rest} more findings are left out.", class_="note") if rest > 0 else ""
    return joined(tag("ul", *items, class_="findings"), note)


def _class(severity: Severity) -> str:
    return severity.name.lower()


def ledger(trace: Trace) -> Markup:
    """Return the account of each plugin: what it produced, what came through, what was lost and why."""
    accounts = _accounts(trace)
    if not accounts:
        text = "The trace holds no account of what was lost on the way into it."
        return tag("p", text, class_="sub")
    heads = [("plugin", False), *((key.replace("_", " "), True) for key in (*_COUNTS, *_LOSSES)), ("said", False)]
    rows = [_account_row(name, account) for name, account in list(accounts.items())[:_MOST_PLUGINS]]
    report = trace.facts.get("report")
    notes = report.get("notes") if isinstance(report, Mapping) else None
    shown = (
        [tag("p", cut(str(note)), class_="note") for note in notes[:_MOST_FINDINGS]] if isinstance(notes, list) else []
    )
    return joined(table(heads, rows), *shown)


def n_lost(trace: Trace) -> int | None:
    """Return how many records were lost, as far as their number is known; None: there is no account."""
    accounts = _accounts(trace)
    if not accounts:
        return None
    return sum(
        _total(missing_by_reason(account)) + _total(account.get("lost_unknown")) for account in accounts.values()
    )


def _accounts(trace: Trace) -> dict[str, Mapping[str, Any]]:
    report = trace.facts.get("report")
    plugins = report.get("plugins") if isinstance(report, Mapping) else None
    if not isinstance(plugins, Mapping):
        return {}
    return {str(name): account for name, account in plugins.items() if isinstance(account, Mapping)}


def _account_row(name: str, account: Mapping[str, Any]) -> list[Markup]:
    numbers = [account.get(key) for key in (*_COUNTS, *_LOSSES)]
    cells = [tag("td", _reasons(value), class_="n", data_value=_total(value)) for value in numbers]
    said = "; ".join(text for key in _WORDS for text in _texts(account.get(key)))
    return [tag("td", cut(name, 80), class_="t"), *cells, tag("td", cut(said), class_="t", title=cut(said) or None)]


def _total(value: object) -> int:
    """Return a count; of counts by reason their sum; of reasons of losses that nobody counted, their number."""
    if isinstance(value, Mapping):
        return sum(map(_total, value.values()))
    if isinstance(value, list | tuple):
        return len(value)
    return value if isinstance(value, int) else 0


def _reasons(value: object) -> str:
    if isinstance(value, Mapping) and value:
        return cut(", ".join(f"{reason}: {count_text(_total(count))}" for reason, count in value.items()))
    if isinstance(value, list | tuple) and value:
        return cut("; ".join(map(str, value)))
    return count_text(_total(value))


def _texts(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key}: {text}" for key, text in value.items()]
    return [str(text) for text in value] if isinstance(value, list | tuple) else []


def facts_of(trace: Trace) -> Markup:
    """Return the other facts of the capture; what is in another section is left out."""
    found = dict(_flat({key: value for key, value in trace.facts.items() if key != "report"}))
    shown = dict(list(found.items())[:_MOST_FACTS])
    rest = len(found) - len(shown)
    note = tag("p", f"{rest} more facts are left out.", class_="note") if rest else ""
    return joined(facts_table(shown), note) if shown else Markup()


def _flat(facts: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        if isinstance(value, Mapping) and not before:
            yield from _flat(value, f"{key}: ")
        elif value not in ({}, [], (), ""):
            yield (
                f"{before}{key}",
                value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False),
            )
