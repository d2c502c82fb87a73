"""What the native writers of traces are built from; apart from their use, so that ``devprof build`` can name it unloaded."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["EXPORT"]

_CSRC = Path(__file__).parent / "csrc"
_SOURCES = ("numbers.cpp", "encode.cpp", "json.cpp", "perfetto.cpp", "rows.cpp", "pftrace.cpp")
_HEADERS = ("numbers.h", "chunk.h", "columns.h", "known.h", "lists.h", "perfetto.h", "protobuf.h")

EXPORT = NativeBuild(
    name="export",
    sources=tuple(_CSRC / name for name in _SOURCES),
    headers=tuple(_CSRC / name for name in _HEADERS),
    include_dirs=(_CSRC,),
    needs_torch=False,
    description="writes the events of Chrome and Perfetto traces, several times faster than Python",
)
"""Library of `devprof.export.native_events` and `devprof.export.perfetto_native`."""
