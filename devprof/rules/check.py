"""Apply rules to a trace."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from devprof.errors import UsageError
from devprof.rules import accounts, links, texts, times
from devprof.rules.finding import Finding, Rule
from devprof.store import Trace

__all__ = ["RULES", "check"]

RULES: tuple[Rule, ...] = (*times.RULES, *links.RULES, *accounts.RULES, *texts.RULES)
"""Every rule, in the order in which findings come."""


def check(trace: Trace, rules: Iterable[Rule] | None = None, *, ignore: Collection[str] = ()) -> list[Finding]:
    """Return what does not hold of a trace; an empty list where all is well.

    Args:
        trace: any trace, whoever recorded it.
        rules: the rules to apply; None: `RULES`.
        ignore: names of rules to leave out.

    Raises:
        UsageError: a name in `ignore` is that of no rule.
    """
    rules = RULES if rules is None else tuple(rules)
    if unknown := set(ignore) - {rule.name for rule in rules}:
        raise UsageError(
            f"there is no rule {', '.join(sorted(unknown))}; expected among {[rule.name for rule in rules]}"
        )
    return [
        Finding(rule.name, rule.severity, found.count, found.says, found.events)
        for rule in rules
        if rule.name not in ignore
        for found in rule.check(trace)
    ]
