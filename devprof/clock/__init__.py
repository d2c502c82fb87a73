"""Device ticks to Unix nanoseconds, with the evidence.

Job: bracket a device's clock between readings of the host's, fit a line, convert, and say how far off it may be.
In: `ClockSample`s and a `ClockDomain`.
Out: `Fit`: conversion, uncertainty, warnings, a description for the trace.
Never: reads a clock that it was not given, or corrects a single record's time.
"""

from devprof.clock.bursts import Burst, bursts_of
from devprof.clock.fit import Fit
from devprof.clock.sampling import sample

__all__ = ["Burst", "Fit", "bursts_of", "sample"]
