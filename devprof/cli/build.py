"""``devprof build``: build the native libraries ahead of time."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from devprof.contract import NativeBuild
from devprof.errors import UsageError
from devprof.native import build as build_library
from devprof.native import find, missing
from devprof.registry import Catalogue, discover

__all__ = ["build", "native_builds"]


def native_builds(catalogue: Catalogue | None = None) -> dict[str, NativeBuild]:
    """Return every library that can be built: devprof's own, and those of plugins."""
    from devprof.host.build_spec import RANGES
    from devprof.host.functions.build_spec import FUNCTIONS
    from devprof.torch.bridge_build import BRIDGE
    from devprof.torch.sink_build import SINK

    of_plugins = (catalogue or discover()).native_builds
    return {spec.name: spec for spec in (BRIDGE, SINK, RANGES, FUNCTIONS, *of_plugins)}


def build(
    names: Annotated[list[str] | None, typer.Argument(help="What to build; everything when left out.")] = None,
    force: Annotated[bool, typer.Option(help="Build even what is cached.")] = False,
) -> None:
    """Build the native libraries, against the installed torch and for this Python.

    Without names, what cannot be built here (no torch, no headers) is said and left out. Exit code 1 where a plugin failed to
    say what it has to build.
    """
    catalogue = discover()
    known = native_builds(catalogue)
    unknown = [name for name in names or [] if name not in known]
    if unknown:
        raise UsageError(f"nothing is called {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    for name in names or list(known):
        if not names and find(known[name]) is None and (reason := missing(known[name])):
            typer.echo(f"{name}: left out, {reason}")
        else:
            _build(known[name], force=force)
    failures = [failure for failure in catalogue.failures if failure.hook == "devprof_native_builds"]
    for failure in failures:
        typer.echo(f"plugin {failure.name}: FAILED in {failure.hook}: {failure.error} (devprof plugins -v)", err=True)
    if failures and not names:
        raise typer.Exit(1)


def _build(spec: NativeBuild, *, force: bool) -> None:
    if not force and (found := find(spec)) is not None:
        typer.echo(f"{spec.name}: already built, {found}")
        return
    began = time.monotonic()
    path = build_library(spec, force=force)
    typer.echo(f"{spec.name}: built in {time.monotonic() - began:.1f} s, {path}")
