"""Questions to a trace, answered as rows and tables.

Job: the lists, averages, tables and curves of torch's profiler, for a trace of any host; everything is computed on columns.
In: a `Trace`.
Out: an `EventList`, `Averages`, a `MemoryCurve` per device; rows become objects when somebody looks at one.
Never: changes a trace, asks a plugin or a clock, writes a file.
"""

from devprof.analysis.averages import Averages, FunctionEventAvg
from devprof.analysis.event_list import EventList, events, key_averages
from devprof.analysis.function_event import FunctionEvent, Interval, Kernel
from devprof.analysis.memory import MemoryCurve, memory_curve

__all__ = [
    "Averages",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemoryCurve",
    "events",
    "key_averages",
    "memory_curve",
]
