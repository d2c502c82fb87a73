"""What the bridge is built from; separate from its use, so that ``devprof build`` needs no torch to name it."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild
from devprof.native import include_dir

__all__ = ["BRIDGE"]

_CSRC = Path(__file__).parent / "csrc"
_SOURCES = ("stacks.cpp", "block.cpp", "session.cpp", "demand.cpp", "host.cpp", "interrupt.cpp")
_HEADERS = ("interrupt.h", "stacks.h", "block.h", "session.h", "demand.h", "compat.h")

BRIDGE = NativeBuild(
    name="bridge",
    sources=tuple(_CSRC / name for name in _SOURCES),
    headers=(*(_CSRC / name for name in _HEADERS), include_dir() / "devprof/correlation.h"),
    include_dirs=(_CSRC,),
    description="makes devprof's plugins a Kineto child profiler",
)
