"""What the native writer of Chrome JSON is built from; apart from its use, so that ``devprof build`` can name it unloaded."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["CHROME"]

_CSRC = Path(__file__).parent / "csrc"

CHROME = NativeBuild(
    name="chrome",
    sources=tuple(_CSRC / name for name in ("numbers.cpp", "encode.cpp", "json.cpp")),
    headers=tuple(_CSRC / name for name in ("numbers.h", "chunk.h")),
    include_dirs=(_CSRC,),
    needs_torch=False,
    description="writes the events of Chrome traces, several times faster than Python",
)
"""Library of `devprof.export.native_events`."""
