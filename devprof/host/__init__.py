"""Host recording without torch: ranges, memory reports and Python functions.

Job: per-thread queues of ranges and memory events, callbacks on ranges, the current range of a thread or task.
In: `record_function`, `RecordFunction` and `report_memory` in the program; a clock; who wants to be told.
Out: a `HostRecording` of columns, and the `devprof.correlation` provider while it records.
Never: converts times, builds a tree, knows a plugin, or imports torch.
"""

from devprof.host.recording import HOST_TICKS, HostOptions, HostRecording
from devprof.host.scopes import RecordScope

__all__ = ["HOST_TICKS", "HostOptions", "HostRecording", "RecordScope"]
