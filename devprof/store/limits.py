"""`Limits`: how much of a recording is kept, and what becomes of what is beyond that."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from devprof.errors import UsageError

__all__ = ["DEFAULT_BYTES", "DEFAULT_RECORDS", "Limits", "WhenFull"]

DEFAULT_RECORDS = 10_000_000
"""Records that are kept where a user sets no limit of his own."""

DEFAULT_BYTES = 256 << 20
"""Bytes that a ring, totals or the part before the spill file take where a user names no limit."""

_LEAST_BYTES = 1 << 16


class WhenFull(Enum):
    """What becomes of the records that are more than the limits allow."""

    STOP = "stop"
    """The newest are left out: the trace holds the beginning, and says that the rest is lost."""
    RING = "ring"
    """The oldest are let go: the trace holds the latest part, whole from some point of time on."""
    SPILL = "spill"
    """The oldest are moved to a file until the stop: the trace holds everything."""
    TOTALS = "totals"
    """As `RING`, and what is let go is added up first: counts and times per name are those of the whole session."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one source of records: the host is one, every plugin is one, and each has them for itself.

    Records are kept and let go in chunks, so a source may hold a chunk per thread more than the limit.

    Attributes:
        max_records: most records in memory; None: no such limit.
        max_bytes: most bytes that they take in memory; None: no such limit.
        when_full: what becomes of further ones.
        spill_dir: where the file of `WhenFull.SPILL` is; None: the system's directory for temporary files.

    Raises:
        UsageError: there is no such directory.
    """

    max_records: int | None = None
    max_bytes: int | None = None
    when_full: WhenFull = WhenFull.STOP
    spill_dir: str | None = None

    def __post_init__(self) -> None:
        if self.spill_dir is not None and not Path(self.spill_dir).is_dir():
            raise UsageError(f"spill_dir is {self.spill_dir!r}, and there is no such directory; make it first")

    @classmethod
    def given(cls, max_records: object, max_bytes: object, when_full: object, spill_dir: object) -> Limits | None:
        """Return the limits that a user asked for, or None where nothing was asked for.

        Args:
            max_records, max_bytes: numbers, or None.
            when_full: a `WhenFull`, or its text; None: stop.
            spill_dir: a directory, or None.

        Raises:
            UsageError: one of them is not what it should be, or they do not fit together.
        """
        if max_records is max_bytes is when_full is spill_dir is None:
            return None
        policy = _policy(when_full)
        if policy is WhenFull.STOP and max_records is None and max_bytes is None:
            raise UsageError("when_full='stop' says nothing without a limit; give max_records or max_bytes")
        if spill_dir is not None and policy is not WhenFull.SPILL:
            raise UsageError(f"spill_dir is for when_full='spill', and this is {policy.value!r}")
        max_records, max_bytes = _number("max_records", max_records), _number("max_bytes", max_bytes)
        if max_records is None and max_bytes is None:
            max_bytes = DEFAULT_BYTES
        _check("max_records", max_records, 1)
        _check("max_bytes", max_bytes, _LEAST_BYTES)
        directory = None if spill_dir is None else _directory(spill_dir)
        return cls(max_records, max_bytes, policy, directory)

    def exceeded(self, records: int, size_bytes: int) -> bool:
        """Say whether so much is too much."""
        return (self.max_records is not None and records > self.max_records) or (
            self.max_bytes is not None and size_bytes > self.max_bytes
        )

    def describe(self) -> dict[str, object]:
        """Return the limits as JSON values, for a trace's facts."""
        return {"max_records": self.max_records, "max_bytes": self.max_bytes, "when_full": self.when_full.value}


def _policy(when_full: object) -> WhenFull:
    try:
        return WhenFull.STOP if when_full is None else WhenFull(when_full)
    except ValueError:
        known = ", ".join(repr(one.value) for one in WhenFull)
        raise UsageError(f"when_full is {when_full!r}; expected one of {known}") from None


def _directory(spill_dir: object) -> str:
    if isinstance(spill_dir, str | bytes | os.PathLike):
        return os.fsdecode(spill_dir)
    raise UsageError(f"spill_dir is {spill_dir!r}; expected a directory")


def _number(name: str, value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():  # 64e6 is how people write it
        return int(value)
    raise UsageError(f"{name} is {value!r}; expected a whole number")


def _check(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise UsageError(f"{name} is {value}; expected {least} or more")
