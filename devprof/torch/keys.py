"""Metadata keys that torch or Kineto read themselves, and what they expect there.

Source: torch/autograd/profiler_util.py (`_EVENT_METADATA_KEYS` of 2.13: a value of another type raises ValueError in
``prof.events()`` when ``expose_kineto_event_metadata`` is on) and torch/csrc/profiler/collection.cpp ("Ev Idx", "hidden").
"""

from __future__ import annotations

from devprof.model import MetadataKind

__all__ = ["OF_THE_FILE", "RESERVED", "fits_torch"]

RESERVED = frozenset({"Ev Idx", "External id", "correlation", "device", "hidden", "stream"})
"""Keys that devprof, torch or Kineto write; a plugin's own item of that name is left out and counted."""

OF_THE_FILE = frozenset(
    {
        "ERROR",
        "PT_PROFILER_JOB_ATTEMPT_INDEX",
        "PT_PROFILER_JOB_NAME",
        "PT_PROFILER_JOB_VERSION",
        "WARNING",
        "baseTimeNanoseconds",
        "devprof",
        "deviceProperties",
        "displayTimeUnit",
        "distributedInfo",
        "host_name",
        "profile_memory",
        "record_shapes",
        "schemaVersion",
        "traceEvents",
        "traceName",
        "trace_id",
        "with_flops",
        "with_modules",
        "with_stack",
    }
)
"""Keys at the top level of the file that Kineto (output_json.cpp), torch or devprof write; a plugin's gets another name."""

_INT = frozenset({MetadataKind.INT})
_NUMBER = frozenset({MetadataKind.INT, MetadataKind.FLOAT})
_LIST = frozenset({MetadataKind.INT_LIST})

_EXPECTED = {
    "registers per thread": _INT,
    "shared memory": _INT,
    "grid": _LIST,
    "block": _LIST,
    "priority": _INT,
    "blocks per SM": _NUMBER,
    "warps per SM": _NUMBER,
    "est. achieved occupancy %": _NUMBER,
    "occupancy": _LIST,
    "queued": _INT,
    "graph id": _INT,
    "graph node id": _INT,
    "context": _INT,
    "channel": _INT,
    "channel_type": _INT,
    "bytes": _INT,
    "memory bandwidth (GB/s)": _NUMBER,
    "In msg nelems": _INT,
    "Out msg nelems": _INT,
    "Global rank start": _INT,
    "Global rank stride": _INT,
    "Group size": _INT,
    "Rank": _INT,
    "Src Rank": _INT,
    "Dst Rank": _INT,
    "Seq": _INT,
}


def fits_torch(key: str, kind: MetadataKind) -> bool:
    """Say whether torch can read a value of this kind under this key."""
    return kind in _EXPECTED.get(key, frozenset(MetadataKind))
