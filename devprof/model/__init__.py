"""The records of a trace, in Kineto's words.

Job: one record (`GenericTraceActivity`), the same record as columns (`ActivityBatch`), and the small values beside them.
In: plain numbers and text.
Out: values that every other room shares.
Never: knows a plugin, a clock, a host or a file format.
"""

from devprof.model.activity import (
    Flow,
    GenericTraceActivity,
    MetadataValue,
    kLinkAsyncCpuGpu,
    kLinkFwdBwd,
)
from devprof.model.activity_type import ActivityType, Role
from devprof.model.batch import ActivityBatch, BatchBuilder
from devprof.model.items import MixedKindsError, RecordError
from devprof.model.metadata import MetadataColumn, MetadataKind
from devprof.model.places import DeviceInfo, ResourceInfo, TraceSpan

__all__ = [
    "ActivityBatch",
    "ActivityType",
    "BatchBuilder",
    "DeviceInfo",
    "Flow",
    "GenericTraceActivity",
    "MetadataColumn",
    "MetadataKind",
    "MetadataValue",
    "MixedKindsError",
    "RecordError",
    "ResourceInfo",
    "Role",
    "TraceSpan",
    "kLinkAsyncCpuGpu",
    "kLinkFwdBwd",
]
