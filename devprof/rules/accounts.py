"""Rules on the account that a trace carries of its own making."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from devprof.model.reasons import lost_of
from devprof.rules.finding import Rule, Severity, Violation, accounts
from devprof.store import Trace

__all__ = ["RULES", "missing_by_reason"]


def missing_by_reason(account: Mapping[str, object]) -> dict[str, int]:
    """Return how many records of a plugin should be in the trace and are not, by reason."""
    return lost_of({**_counts(account, "dropped"), **_counts(account, "rejected")})


def _sums_agree(trace: Trace) -> Iterator[Violation]:
    for name, account in accounts(trace).items():
        produced, emitted = account.get("produced"), account.get("emitted")
        if not isinstance(produced, int) or not isinstance(emitted, int):
            continue
        lost = sum(_counts(account, "dropped").values()) + sum(_counts(account, "rejected").values())
        if produced != emitted + lost:
            yield Violation(
                1, f"the account of {name} does not close: produced {produced}, emitted {emitted}, lost {lost}"
            )


def _nothing_is_missing(trace: Trace) -> Iterator[Violation]:
    for name, account in accounts(trace).items():
        missing = missing_by_reason(account)
        if lost := sum(missing.values()):
            listed = ", ".join(f"{reason}: {count}" for reason, count in sorted(missing.items()))
            yield Violation(lost, f"{lost} records of {name} were lost ({listed})")
        for reason in account.get("lost_unknown") or ():
            yield Violation(1, f"an unknown number of records of {name} was lost: {reason}")


def _plugins_took_part_to_the_end(trace: Trace) -> Iterator[Violation]:
    for name, account in accounts(trace).items():
        verdict = account.get("set_aside")
        if isinstance(verdict, Mapping):
            hook, until = verdict.get("hook"), verdict.get("until")
            yield Violation(1, f"{name} was set aside in {hook} until {until}; its rows end there")
        for failure in account.get("failures") or ():
            yield Violation(1, str(failure))


def _nothing_is_in_doubt(trace: Trace) -> Iterator[Violation]:
    for name, account in accounts(trace).items():
        for doubt in account.get("doubts") or ():
            yield Violation(1, f"{name}: {doubt}")


def _counts(account: Mapping[str, object], key: str) -> Mapping[str, int]:
    counts = account.get(key)
    return counts if isinstance(counts, Mapping) else {}


RULES = (
    Rule("account.closes", Severity.ERROR, "Produced is emitted plus dropped plus rejected.", _sums_agree),
    Rule("account.whole", Severity.WARNING, "No record was lost on the way.", _nothing_is_missing),
    Rule("account.plugins", Severity.WARNING, "Every plugin took part to the end.", _plugins_took_part_to_the_end),
    Rule(
        "account.doubts", Severity.WARNING, "No plugin's records looked wrong in their session.", _nothing_is_in_doubt
    ),
)
