"""Host recording without torch: ranges, memory reports and Python functions.

Job: per-thread queues of ranges and memory events, within limits; callbacks on ranges; the current range of a thread or task.
In: `record_function`, `RecordFunction` and `report_memory` in the program; a clock; who wants to be told.
Out: a `HostRecording` of columns, and the `devprof.correlation` provider while it records.
Never: converts times, builds a tree, knows a plugin, or imports torch.
"""

from devprof.host.callbacks import CallbackHandle, RangeEvent
from devprof.host.carry import carry
from devprof.host.memory import report_memory, report_out_of_memory
from devprof.host.mirrors import Mirror
from devprof.host.operators import RecordFunction
from devprof.host.ranges import record_function
from devprof.host.recorder import HostRecorder
from devprof.host.recording import HOST_TICKS, HostOptions, HostRecording
from devprof.host.scopes import RecordScope
from devprof.host.watchers import add_global_callback, add_thread_local_callback, remove_callback

__all__ = [
    "HOST_TICKS",
    "CallbackHandle",
    "HostOptions",
    "HostRecorder",
    "HostRecording",
    "Mirror",
    "RangeEvent",
    "RecordFunction",
    "RecordScope",
    "add_global_callback",
    "add_thread_local_callback",
    "carry",
    "record_function",
    "remove_callback",
    "report_memory",
    "report_out_of_memory",
]
