"""What the sink is built from; a library of its own, so that a process that only profiles never builds or loads it."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["SINK"]

_CSRC = Path(__file__).parent / "csrc"
_SOURCES = ("sink.cpp", "sink_trace.cpp", "sink_log.cpp", "sink_items.cpp")
_HEADERS = ("sink.h", "sink_trace.h", "sink_log.h", "sink_items.h", "compat.h")

SINK = NativeBuild(
    name="sink",
    sources=tuple(_CSRC / name for name in _SOURCES),
    headers=tuple(_CSRC / name for name in _HEADERS),
    include_dirs=(_CSRC,),
    description="reads a finished torch profile into a Trace, and saves it again",
)
