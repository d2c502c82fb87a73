"""The one place that knows the order of the stages.

Job: clock -> window -> link, for one plugin's records in one capture; then everything of a capture into one `Trace`.
In: a `LaneResult` of each plugin from `capture`, a `HostRecording` from `host`.
Out: a `LinkedLane` per plugin: records in Unix ns, inside the window, with their links, flows and spans; its ledger brought up
to date. From those and the recording a `Trace`.
Never: does a stage's work itself, or knows which host asked.
"""

from devprof.pipeline.lane import LinkedLane, complete_since_ns, process
from devprof.pipeline.lanes import DEVICES_PER_PLUGIN, accounted, linked_lanes
from devprof.pipeline.recorded import known_ops, user_parents
from devprof.pipeline.trace import assemble

__all__ = [
    "DEVICES_PER_PLUGIN",
    "LinkedLane",
    "accounted",
    "assemble",
    "complete_since_ns",
    "known_ops",
    "linked_lanes",
    "process",
    "user_parents",
]
