"""`devprof.profile`: the front door of both hosts, in the words of torch.profiler.

Job: schedule, steps and states of a profile; the host that needs no torch; answers from the finished trace.
In: the user's options, a host of `HOSTS`.
Out: `profile`, `schedule`, `ProfilerAction`, `ProfilerActivity`, `tensorboard_trace_handler`, `StepTracker`.
Never: imports torch or `devprof.torch`, records anything itself, or computes a figure.
"""

from devprof.profiler.actions import ProfilerAction
from devprof.profiler.activities import ProfilerActivity
from devprof.profiler.front_door import profile
from devprof.profiler.hosts import HOSTS
from devprof.profiler.scheduling import Schedule, schedule
from devprof.profiler.step_tracker import StepTracker, step_tracker
from devprof.profiler.trace_files import tensorboard_trace_handler

__all__ = [
    "HOSTS",
    "ProfilerAction",
    "ProfilerActivity",
    "Schedule",
    "StepTracker",
    "profile",
    "schedule",
    "step_tracker",
    "tensorboard_trace_handler",
]
