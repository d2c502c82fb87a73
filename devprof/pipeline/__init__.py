"""The one place that knows the order of the stages.

Job: clock -> window -> link, for one plugin's records in one capture.
In: a `LaneResult` from `capture`.
Out: a `LinkedLane`: records in Unix ns, inside the window, with their links, flows and spans; its ledger brought up to date.
Never: does a stage's work itself, or knows which host asked.
"""

from devprof.pipeline.lane import LinkedLane, process

__all__ = ["LinkedLane", "process"]
