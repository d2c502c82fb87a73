"""Questions to a trace, answered as rows and tables.

Job: the lists, averages, tables and curves of torch's profiler, for a trace of any host; everything is computed on columns.
In: a `Trace`.
Out: an `EventList`, `Averages`, a `MemoryCurve` per device, `Answer`s on device time; rows become objects when looked at.
Never: changes a trace, asks a plugin or a clock, writes a file.
"""

from devprof.analysis.answer import Answer
from devprof.analysis.averages import Averages, FunctionEventAvg
from devprof.analysis.critical_path import critical_path
from devprof.analysis.difference import VERDICTS, diff
from devprof.analysis.event_list import EventList, events, key_averages
from devprof.analysis.function_event import FunctionEvent, Interval, Kernel
from devprof.analysis.kernels import device_breakdown, overlap
from devprof.analysis.launches import launch_latency, queue_length
from devprof.analysis.memory import MemoryCurve, memory_curve
from devprof.analysis.ranks import by_rank
from devprof.analysis.steps import steps
from devprof.analysis.streams import CAUSES, idle_gaps, stream_usage

__all__ = [
    "CAUSES",
    "VERDICTS",
    "Answer",
    "Averages",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemoryCurve",
    "by_rank",
    "critical_path",
    "device_breakdown",
    "diff",
    "events",
    "idle_gaps",
    "key_averages",
    "launch_latency",
    "memory_curve",
    "overlap",
    "queue_length",
    "steps",
    "stream_usage",
]
