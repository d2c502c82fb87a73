"""What the native decoder is built from; separate from its use, so that ``devprof build`` can name it without loading it."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["JSON"]

_CSRC = Path(__file__).parent / "csrc"

JSON = NativeBuild(
    name="json",
    sources=tuple(_CSRC / name for name in ("json.cpp", "events.cpp", "scanner.cpp")),
    headers=tuple(_CSRC / name for name in ("events.h", "scanner.h", "texts.h")),
    include_dirs=(_CSRC,),
    needs_torch=False,
    # times are computed as Python computes them, in steps that are rounded one by one
    flags=("-ffp-contract=off",),
    description="reads the events of a trace in JSON, several times faster than Python's decoders",
)
"""Library of `devprof.store.readers.json_native`."""
