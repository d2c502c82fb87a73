"""What the benchmarks share: a renamed backend without a device, and a gate to hold a ratio against."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import entry_points

__all__ = ["Gate", "renamed_backend"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A measured ratio and its bound.

    Attributes:
        name: what was measured.
        value: the figure, in `unit`.
        bound: greatest value that passes; None for a figure that is only shown.
        unit: ``"x"`` for a ratio, else ``"ns"``, ``"us"``, ``"ms"``, ``"B"``.
        detail: what it was made of.
    """

    name: str
    value: float
    bound: float | None
    unit: str = "x"
    detail: str = ""

    @property
    def passed(self) -> bool:
        """False where the bound is missed."""
        return self.bound is None or self.value <= self.bound

    def line(self) -> str:
        """Return the figure as one line."""
        bound = "" if self.bound is None else f"  (at most {self.bound:g})"
        verdict = "    " if self.bound is None else ("ok  " if self.passed else "MISS")
        return f"{verdict} {self.name}: {self.value:.3g} {self.unit}{bound}  {self.detail}"


def renamed_backend() -> str:
    """Return the name of the renamed PrivateUse1 backend, renaming it where nobody has: torch then takes PrivateUse1.

    Installed plugins are left out, so that only the plugin that is measured takes part.
    """
    import torch

    from devprof.torch import install

    os.environ["DEVPROF_BLOCK_PLUGINS"] = ",".join(entry.name for entry in entry_points(group="devprof.plugins"))
    install()
    name = torch._C._get_privateuse1_backend_name()
    if name != "privateuseone":
        return str(name)
    torch.utils.rename_privateuse1_backend("bench")
    return "bench"
