"""What the compiled ranges are built from; separate from their use, so that ``devprof build`` can name them without loading."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["RANGES"]

RANGES = NativeBuild(
    name="ranges",
    sources=(Path(__file__).parent / "csrc/ranges.cpp",),
    needs_torch=False,
    needs_python=True,
    description="the short way through record_function, compiled: about a third of its time",
)
"""Library of `devprof.host.quick`."""
