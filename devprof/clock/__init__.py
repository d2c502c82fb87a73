"""Ticks of a device or of the host to Unix nanoseconds, with the evidence.

Job: bracket one clock between readings of another, find the line between them, convert, and say how far off it may be.
In: `ClockSample`s and a `ClockDomain`; for the host's own ticks the two clocks.
Out: `Fit` and `HostClock`: conversion, uncertainty, warnings, a description for the trace.
Never: reads a clock that it was not given, or corrects a single record's time.
"""

from devprof.clock.bursts import Burst, bursts_of
from devprof.clock.fit import Fit
from devprof.clock.host import HostClock
from devprof.clock.sampling import sample

__all__ = ["Burst", "Fit", "HostClock", "bursts_of", "sample"]
