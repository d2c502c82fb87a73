"""What is asked for, and what is answered; both checked where they come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from devprof.errors import UsageError

__all__ = ["FORMATS", "Answer", "CaptureRequest"]

FORMATS = (".devprof", ".json", ".json.gz")
"""Ends of the names that a capture can have."""

_MOST_SECONDS = 1e9  # any program allows less; what is longer may not even fit a float
_MOST_STEPS = 1_000_000
_MOST_ACTIVITIES = 32
_LONGEST_ACTIVITY = 200
_FLAGS = ("with_stack", "record_shapes", "profile_memory")


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """One capture.

    Attributes:
        seconds: how long; None: as long as the program allows, for a request of steps.
        steps: how many steps; it ends with them or with the time, whichever is first. None: by time only.
        format: the end of the file's name, one of `FORMATS`.
        activities: what to record, by name; empty: as the program opted in for.
        with_stack, record_shapes, profile_memory: as for `devprof.profile`.
    """

    seconds: float | None = None
    steps: int | None = None
    format: str = ".devprof"
    activities: tuple[str, ...] = ()
    with_stack: bool = False
    record_shapes: bool = False
    profile_memory: bool = False

    def __post_init__(self) -> None:
        seconds, steps = self.seconds, self.steps
        if seconds is None and steps is None:
            raise UsageError("say how long: seconds, steps, or both")
        if seconds is not None and not (_is_number(seconds) and 0 < seconds <= _MOST_SECONDS):
            raise UsageError(f"seconds is {seconds!r:.200}; expected a number above 0")
        if steps is not None and not (type(steps) is int and 0 < steps <= _MOST_STEPS):
            raise UsageError(f"steps is {steps!r:.200}; expected a whole number from 1 to {_MOST_STEPS}")
        if self.format not in FORMATS:
            raise UsageError(f"format is {self.format!r:.200}; expected one of {', '.join(FORMATS)}")
        names = self.activities
        if len(names) > _MOST_ACTIVITIES or not all(
            isinstance(n, str) and 0 < len(n) <= _LONGEST_ACTIVITY for n in names
        ):
            raise UsageError(f"activities are {names!r:.200}; expected at most {_MOST_ACTIVITIES} names")
        for flag in _FLAGS:
            if type(getattr(self, flag)) is not bool:
                raise UsageError(f"{flag} is {getattr(self, flag)!r:.200}; expected true or false")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: object) -> CaptureRequest:
        """Return the request that a message holds.

        Raises:
            UsageError: it holds something else.
        """
        if not isinstance(given, Mapping):
            raise UsageError(f"the request is {given!r:.200}; expected an object")
        fields = {key: value for key, value in given.items() if key in cls.__dataclass_fields__}
        activities = fields.get("activities", ())
        if not isinstance(activities, list | tuple):
            raise UsageError(f"activities are {activities!r:.200}; expected a list of names")
        return cls(**{**fields, "activities": tuple(activities)})


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a capture.

    Attributes:
        path: the trace, absolute, as the program sees it.
        host: what recorded, ``"torch"`` or ``"python"``.
        seconds: how long it recorded.
        steps: whole steps in it; None where none were asked for.
        events: events in it; None where nobody has counted them.
        size_bytes: of the file.
        ended_by: ``"time"``, ``"steps"``, ``"asked"`` (the other side ended it), ``"program"`` (a profile of its own began) or
            ``"exit"``.
        notes: what else there is to know.
    """

    path: str
    host: str
    seconds: float
    steps: int | None
    events: int | None
    size_bytes: int
    ended_by: str
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Answer:
        """Return the answer that a message holds.

        Raises:
            UsageError: it holds something else.
        """
        try:
            fields = {name: given[name] for name in cls.__dataclass_fields__}
            return cls(**{**fields, "notes": tuple(map(str, fields["notes"]))})
        except (KeyError, TypeError) as error:
            raise UsageError(f"the program's answer is not understood: {error!r}") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
