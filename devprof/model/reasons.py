"""Why a record is not in a trace: the reasons of the account that more than one room knows."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "AFTER_WINDOW",
    "BEFORE_WINDOW",
    "DELIVERED_TWICE",
    "LAUNCHED_OUTSIDE_WINDOW",
    "LET_GO",
    "NOT_OF_THE_WINDOW",
    "OVER_LIMIT",
    "lost_of",
]

BEFORE_WINDOW = "before window"
"""Older than what was asked for."""
AFTER_WINDOW = "after window"
LAUNCHED_OUTSIDE_WINDOW = "launched outside window"

LET_GO = "let go for newer ones"
"""Was in a ring, or has been added up."""

OVER_LIMIT = "record limit reached"
"""Came when there was no room for more."""

DELIVERED_TWICE = "delivered twice"
"""The second of two records that are the same: the first one is in the trace."""

NOT_OF_THE_WINDOW = (BEFORE_WINDOW, AFTER_WINDOW, LAUNCHED_OUTSIDE_WINDOW, LET_GO)
"""Left out on purpose: a session is clean all the same."""


def lost_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Return, of records that are not in a trace, by reason, those that should be there."""
    return {reason: n for reason, n in counts.items() if reason not in (*NOT_OF_THE_WINDOW, DELIVERED_TWICE)}
