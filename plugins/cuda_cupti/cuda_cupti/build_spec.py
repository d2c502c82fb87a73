"""What ``devprof build cupti`` compiles: the functions that CUPTI calls for buffers, and the walk through them."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["CUPTI"]

_SOURCES = Path(__file__).resolve().parent / "csrc"

CUPTI = NativeBuild(
    name="cupti",
    sources=(_SOURCES / "walk.cpp", _SOURCES / "exchange.cpp"),
    needs_torch=False,
    description="hands buffers to CUPTI and finds the records in them, without holding the program up",
)
"""Library of `cuda_cupti.native_exchange` and `cuda_cupti.walk`; without it Python does the same."""
