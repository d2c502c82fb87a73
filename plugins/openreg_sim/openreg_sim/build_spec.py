"""What `devprof build openreg` compiles: the native device, against the installed torch."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

__all__ = ["openreg_build"]

_CSRC = Path(__file__).resolve().parent / "csrc"


def openreg_build() -> NativeBuild:
    """Return the sources of the native device; one translation unit, which includes the rest."""
    return NativeBuild(
        name="openreg",
        sources=(_CSRC / "openreg.cpp",),
        headers=tuple(sorted(_CSRC.glob("*.h"))),
        flags=("-O1",),  # two seconds less than -O2, and no slower: torch's own code is where an op's time goes
        description="the simulated device `openreg` for torch",
    )
