"""What the native core is built from; separate from its use, so that ``devprof build`` can name it without loading it."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["FUNCTIONS"]

_CSRC = Path(__file__).parent / "csrc"

FUNCTIONS = NativeBuild(
    name="functions",
    sources=tuple(_CSRC / name for name in ("buffers.cpp", "tables.cpp", "session.cpp", "hooks.cpp", "functions.cpp")),
    headers=tuple(_CSRC / name for name in ("buffers.h", "tables.h", "session.h", "hooks.h")),
    include_dirs=(_CSRC,),
    needs_torch=False,
    needs_python=True,
    description="records Python and C function calls, for with_stack without torch",
)
