"""What ``devprof build cupti`` compiles: the walk through CUPTI's buffers."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["CUPTI"]

CUPTI = NativeBuild(
    name="cupti",
    sources=(Path(__file__).resolve().parent / "csrc" / "walk.cpp",),
    needs_torch=False,
    description="finds the records in CUPTI's buffers, several times faster than Python, and lets the program run meanwhile",
)
"""Library of `cuda_cupti.walk`, which does without it too."""
