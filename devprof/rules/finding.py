"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.store import Trace

__all__ = ["Finding", "Rule", "Severity", "Violation", "accounts", "where"]

_SHOWN = 5


class Severity(IntEnum):
    """How bad it is that a rule does not hold."""

    INFO = 0
    """Worth knowing; nothing is wrong with the trace."""
    WARNING = 1
    """Some question gets a wrong or an incomplete answer."""
    ERROR = 2
    """No right capture looks like this."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a rule does not hold, over all the events concerned.

    Attributes:
        count: how many there are.
        says: a sentence: what was expected and what is there.
        events: indices of the first few events concerned.
    """

    count: int
    says: str
    events: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that holds of every right trace.

    Attributes:
        name: short name, such as ``"times.durations"``.
        severity: how bad it is where it does not hold.
        says: the rule, in a sentence.
        check: yields what does not hold; never changes the trace.
    """

    name: str
    severity: Severity
    says: str
    check: Callable[[Trace], Iterator[Violation]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that does not hold for a trace.

    Attributes:
        rule: name of the rule.
        severity: how bad it is.
        count: how many cases there are.
        says: what was expected and what is there.
        events: indices of the first few events concerned.
    """

    rule: str
    severity: Severity
    count: int
    says: str
    events: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.severity.name.lower()} {self.rule}: {self.says}"


def where(mask: npt.NDArray[np.bool_], says: Callable[[int, int], str]) -> Iterator[Violation]:
    """Yield one violation for the events of a mask, or nothing where there are none.

    Args:
        mask: (n,) bool, the events concerned.
        says: makes the sentence from their number and the index of the first one.
    """
    if found := int(np.count_nonzero(mask)):
        events = np.flatnonzero(mask)[:_SHOWN].tolist()
        yield Violation(found, says(found, events[0]), tuple(events))


def accounts(trace: Trace) -> dict[str, Mapping[str, Any]]:
    """Return the account of each plugin, as the trace's facts hold it; empty for a trace without."""
    report = trace.facts.get("report")
    plugins = report.get("plugins") if isinstance(report, Mapping) else None
    if not isinstance(plugins, Mapping):
        return {}
    return {str(name): account for name, account in plugins.items() if isinstance(account, Mapping)}
