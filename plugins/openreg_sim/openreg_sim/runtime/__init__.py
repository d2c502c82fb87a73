"""The runtime of the simulated device: streams, events, copies, memory, clocks, and what a profiler may hear of them.

Job: give every call its place on a modelled timeline, and tell afterwards what really happened.
In: calls, from Python (`Runtime.launch` and friends) or from the native device (`Runtime.replay`).
Out: waiting that takes as long as the modelled work, activity records for clients, `Runtime.ground_truth`.
Never: imports torch or devprof; a vendor's runtime knows neither.

    from openreg_sim.runtime import Runtime, RuntimeConfig

    runtime = Runtime(RuntimeConfig.virtual_clock())
    side = runtime.create_stream()
    runtime.launch("scale", flops=1e9, bytes=4e6, stream=side)
    runtime.device_synchronize()
    runtime.ground_truth()["end_ns"]
"""

from openreg_sim.runtime.clocks import DeviceClock, HostClock, RealClock, VirtualClock
from openreg_sim.runtime.config import RuntimeConfig
from openreg_sim.runtime.cost import CostModel, Work
from openreg_sim.runtime.device import Runtime, StreamInfo
from openreg_sim.runtime.errors import ErrorCode, OpenRegError, OpenRegOutOfMemoryError
from openreg_sim.runtime.faults import (
    ClockStep,
    DropRecords,
    DuplicateRecords,
    FailCall,
    FaultRule,
    LateFlush,
    ReorderRecords,
    SmallBuffers,
)
from openreg_sim.runtime.memory import MemoryInfo
from openreg_sim.runtime.process import runtime, use_runtime
from openreg_sim.runtime.records import TRUTH_DTYPE, Call

__all__ = [
    "TRUTH_DTYPE",
    "Call",
    "ClockStep",
    "CostModel",
    "DeviceClock",
    "DropRecords",
    "DuplicateRecords",
    "ErrorCode",
    "FailCall",
    "FaultRule",
    "HostClock",
    "LateFlush",
    "MemoryInfo",
    "OpenRegError",
    "OpenRegOutOfMemoryError",
    "RealClock",
    "ReorderRecords",
    "Runtime",
    "RuntimeConfig",
    "SmallBuffers",
    "StreamInfo",
    "VirtualClock",
    "Work",
    "runtime",
    "use_runtime",
]
