"""What a check is: a number, an area, a promise, and a function that asks a plugin whether it keeps it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devprof.testing.conformance.bench import Bench

__all__ = [
    "DIRECT",
    "HOSTED",
    "ON_TORCH",
    "PAGE",
    "PYTHON_ONLY",
    "Area",
    "Check",
    "CheckFailed",
    "Missing",
    "Undecided",
    "check",
    "expect",
]

PAGE = "docs/conformance.md"
"""Where every check has a section, under its number."""

DIRECT = ("python",)
"""The kit calls the plugin's hooks itself; no host takes part, so one run says all."""
HOSTED = ("python", "torch")
"""A profile of devprof's own host and one of torch's."""
PYTHON_ONLY = ("python",)
"""A profile of devprof's own host; torch cannot bring the situation about."""
ON_TORCH = ("torch",)
"""A profile of torch's; devprof's own host cannot bring the situation about."""


class Area(Enum):
    """What a check is about; the value is the heading in reports and on the page."""

    REGISTRATION = "Registration and lifecycle"
    SELECTION = "Activity selection"
    CORRELATION = "Correlation"
    LINKING = "Linking and flows"
    TIMING = "Timing"
    LOSS = "Loss accounting"
    PLACES = "Texts, metadata, devices and memory"
    STUBS = "Stubs"
    ENDURANCE = "Overload, faults, leaks and cost"


_AREAS = {str(digit): area for digit, area in enumerate(Area, start=1)}


class CheckFailed(AssertionError):
    """A plugin does not keep a promise.

    Attributes:
        expected, found: what was to come, and what came.
        cause: the likely cause, where the check can tell more than its table entry says.
    """

    def __init__(self, expected: str, found: str, cause: str = "") -> None:
        super().__init__(f"expected {expected}; found {found}")
        self.expected = expected
        self.found = found
        self.cause = cause


class Missing(Exception):
    """The plugin or the workload lacks what the check needs; the text says what."""


class Undecided(Exception):
    """Another check, which does not hold, keeps this one from being decided.

    Attributes:
        number: number of that check.
    """

    def __init__(self, number: str, why: str) -> None:
        super().__init__(f"{why}; see {number}")
        self.number = number


def expect(holds: bool, *, expected: object, found: object, cause: str = "") -> None:
    """Go on where something holds.

    Raises:
        CheckFailed: it does not.
    """
    if not holds:
        raise CheckFailed(str(expected), str(found), cause)


@dataclass(frozen=True, slots=True)
class Check:
    """One named, numbered promise of a plugin.

    Attributes:
        number: ``"C101"``; its first digit is the area.
        name: name of its function, for test names.
        promise: one sentence that holds of a right plugin.
        how: what the check does to find out.
        cause: what is most likely wrong where it fails, and what to do.
        needs: names of `NEEDS`; without one of them the check is skipped by name.
        hosts: the hosts it is tried with.
        run: asks; raises `CheckFailed`, `Missing` or `Undecided`, or returns.
    """

    number: str
    name: str
    promise: str
    how: str
    cause: str
    needs: tuple[str, ...]
    hosts: tuple[str, ...]
    run: Callable[[Bench], None]

    @property
    def area(self) -> Area:
        """What it is about."""
        return _AREAS[self.number[1]]

    @property
    def page(self) -> str:
        """Where it is explained."""
        return f"{PAGE}#{self.number.lower()}"


def check(
    number: str, *, cause: str, needs: tuple[str, ...] = (), hosts: tuple[str, ...] = HOSTED
) -> Callable[[Callable[[Bench], None]], Check]:
    """Make a check of a function whose docstring is the promise and, behind an empty line, what the function does.

    Args:
        number, cause, needs, hosts: as in `Check`.
    """

    def make(function: Callable[[Bench], None]) -> Check:
        promise, _, how = (inspect.getdoc(function) or "").partition("\n\n")
        return Check(
            number=number,
            name=function.__name__,
            promise=" ".join(promise.split()),
            how=" ".join(how.split()),
            cause=cause,
            needs=needs,
            hosts=hosts,
            run=function,
        )

    return make
