"""The checks, a module per area.

Job: what a right plugin promises, as functions that find out.
In: a `Bench` with a plugin and a workload.
Out: nothing, or `CheckFailed` with what was expected and what came.
Never: knows a vendor, or pytest.
"""

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
