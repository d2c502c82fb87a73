"""Clocks: what a plugin says about its time, and what devprof measures of it."""

from __future__ import annotations

from dataclasses import dataclass

from devprof.model.batch import UNIX_NS

__all__ = ["HOST_CLOCK", "ClockDomain", "ClockSample"]

HOST_CLOCK = UNIX_NS
"""Nanoseconds since the Unix epoch, CLOCK_REALTIME: the clock of `time.time_ns()` and of Kineto's windows."""


@dataclass(frozen=True, slots=True)
class ClockDomain:
    """A device's own clock.

    Attributes:
        name: what batches carry in `clock`; not empty and not `HOST_CLOCK`.
        ticks_per_second: nominal rate, above 0.
        virtual: True for a simulated clock that does not run with the host's. Its times are anchored at the session's start
            and are exempt from the capture window; durations and order are exact.
    """

    name: str
    ticks_per_second: float = 1e9
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class ClockSample:
    """One bracketed reading: the device's clock, between two readings of the host's.

    Attributes:
        host_before_ns: host clock just before, Unix ns.
        device_ticks: the device's clock.
        host_after_ns: host clock just after, Unix ns.
    """

    host_before_ns: int
    device_ticks: int
    host_after_ns: int
