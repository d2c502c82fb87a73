"""`ActivityType`: Kineto's kinds of activity, with its numbers and names.

Source: libkineto/include/ActivityType.h (numbers are stable across the torch versions devprof supports; the last two
members appear in torch 2.14 and in later Kineto).
"""

from __future__ import annotations

from enum import Enum, IntEnum

__all__ = ["ActivityType", "Role"]


class Role(Enum):
    """What a record means to linking and analysis; the same for every vendor."""

    OP = "op"
    LAUNCH = "launch"
    KERNEL = "kernel"
    COPY = "copy"
    SET = "set"
    SYNC = "sync"
    ANNOTATION = "annotation"
    COUNTER = "counter"
    OVERHEAD = "overhead"
    OTHER = "other"


class ActivityType(IntEnum):
    """Kind of an activity. The value is Kineto's number, `label` its name in a trace's ``cat``."""

    CPU_OP = 0
    USER_ANNOTATION = 1
    GPU_USER_ANNOTATION = 2
    GPU_MEMCPY = 3
    GPU_MEMSET = 4
    CONCURRENT_KERNEL = 5
    EXTERNAL_CORRELATION = 6
    CUDA_RUNTIME = 7
    CUDA_DRIVER = 8
    CPU_INSTANT_EVENT = 9
    PYTHON_FUNCTION = 10
    OVERHEAD = 11
    MTIA_RUNTIME = 12
    MTIA_CCP_EVENTS = 13
    MTIA_INSIGHT = 14
    CUDA_SYNC = 15
    CUDA_EVENT = 16
    MTIA_COUNTERS = 17
    GLOW_RUNTIME = 18
    CUDA_PROFILER_RANGE = 19
    HPU_OP = 20
    XPU_RUNTIME = 21
    XPU_DRIVER = 22
    COLLECTIVE_COMM = 23
    PRIVATEUSE1_RUNTIME = 24
    PRIVATEUSE1_DRIVER = 25
    XPU_SCOPE_PROFILER = 26
    XPU_SYNC = 27
    HARDWARE_COUNTERS = 28

    @property
    def label(self) -> str:
        """Kineto's name of this kind, as written in a trace's ``cat``."""
        return "kernel" if self is ActivityType.CONCURRENT_KERNEL else self.name.lower()

    @property
    def role(self) -> Role:
        """What the record means, whoever made it."""
        return _ROLES.get(self, Role.OTHER)

    @property
    def is_device_work(self) -> bool:
        """True for work that occupies a device: kernels, copies and sets."""
        return self.role in (Role.KERNEL, Role.COPY, Role.SET)


_ROLES = {
    ActivityType.CPU_OP: Role.OP,
    ActivityType.USER_ANNOTATION: Role.ANNOTATION,
    ActivityType.GPU_USER_ANNOTATION: Role.ANNOTATION,
    ActivityType.GPU_MEMCPY: Role.COPY,
    ActivityType.GPU_MEMSET: Role.SET,
    ActivityType.CONCURRENT_KERNEL: Role.KERNEL,
    ActivityType.CUDA_RUNTIME: Role.LAUNCH,
    ActivityType.CUDA_DRIVER: Role.LAUNCH,
    ActivityType.OVERHEAD: Role.OVERHEAD,
    ActivityType.MTIA_RUNTIME: Role.LAUNCH,
    ActivityType.MTIA_CCP_EVENTS: Role.KERNEL,
    ActivityType.CUDA_SYNC: Role.SYNC,
    ActivityType.MTIA_COUNTERS: Role.COUNTER,
    ActivityType.GLOW_RUNTIME: Role.LAUNCH,
    ActivityType.HPU_OP: Role.KERNEL,
    ActivityType.XPU_RUNTIME: Role.LAUNCH,
    ActivityType.XPU_DRIVER: Role.LAUNCH,
    ActivityType.PRIVATEUSE1_RUNTIME: Role.LAUNCH,
    ActivityType.PRIVATEUSE1_DRIVER: Role.LAUNCH,
    ActivityType.XPU_SCOPE_PROFILER: Role.COUNTER,
    ActivityType.XPU_SYNC: Role.SYNC,
    ActivityType.HARDWARE_COUNTERS: Role.COUNTER,
}
