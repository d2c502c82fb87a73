"""`CHECKS`: every check, by number."""

from __future__ import annotations

from devprof.testing.conformance.checks import (
    correlation,
    endurance,
    lifecycle,
    linking,
    loss,
    places,
    registration,
    selection,
    stubs,
    timing,
)
from devprof.testing.conformance.table import Check

__all__ = ["CHECKS"]

_MODULES = (
    registration,
    lifecycle,
    selection,
    correlation,
    linking,
    timing,
    loss,
    places,
    stubs,
    endurance,
)

CHECKS: tuple[Check, ...] = tuple(
    sorted(
        (value for module in _MODULES for value in vars(module).values() if isinstance(value, Check)),
        key=lambda check: check.number,
    )
)
"""Every check, by number."""
