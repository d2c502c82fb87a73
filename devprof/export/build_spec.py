"""What the native JSON writer is built from; apart from its use, so that ``devprof build`` can name it without loading it."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["JSON"]

_CSRC = Path(__file__).parent / "csrc"

JSON = NativeBuild(
    name="json",
    sources=tuple(_CSRC / name for name in ("numbers.cpp", "encode.cpp", "json.cpp")),
    headers=tuple(_CSRC / name for name in ("numbers.h", "chunk.h")),
    include_dirs=(_CSRC,),
    needs_torch=False,
    description="writes the events of Chrome traces, several times faster than Python",
)
"""Library of `devprof.export.native_events`."""
