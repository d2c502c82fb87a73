"""``devprof build``: build the native libraries ahead of time."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from devprof.contract import NativeBuild
from devprof.errors import UsageError
from devprof.native import build as build_library
from devprof.native import find
from devprof.registry import discover

__all__ = ["build", "native_builds"]


def native_builds() -> dict[str, NativeBuild]:
    """Return every library that can be built: the bridge, the sink, and those of plugins."""
    from devprof.torch.bridge_build import BRIDGE
    from devprof.torch.sink_build import SINK

    return {spec.name: spec for spec in (BRIDGE, SINK, *discover().native_builds)}


def build(
    names: Annotated[list[str] | None, typer.Argument(help="What to build; everything when left out.")] = None,
    force: Annotated[bool, typer.Option(help="Build even what is cached.")] = False,
) -> None:
    """Build the native libraries against the installed torch."""
    known = native_builds()
    unknown = [name for name in names or [] if name not in known]
    if unknown:
        raise UsageError(f"nothing is called {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    for name in names or list(known):
        spec = known[name]
        if not force and (found := find(spec)) is not None:
            typer.echo(f"{name}: already built, {found}")
            continue
        began = time.monotonic()
        path = build_library(spec, force=force)
        typer.echo(f"{name}: built in {time.monotonic() - began:.1f} s, {path}")
