"""``devprof build``: build the native libraries ahead of time."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from devprof.cli.output import Json, print_json
from devprof.contract import NativeBuild
from devprof.errors import UsageError
from devprof.native import build as build_library
from devprof.native import find, missing
from devprof.registry import Catalogue, discover

__all__ = ["build", "native_builds"]

_AT_ONCE = 4
"""Compilers at one time, where there are as many cores: with torch's headers each takes a gigabyte."""


def native_builds(catalogue: Catalogue | None = None) -> dict[str, NativeBuild]:
    """Return every library that can be built: devprof's own, and those of plugins."""
    from devprof.export.build_spec import EXPORT
    from devprof.host.build_spec import RANGES
    from devprof.host.functions.build_spec import FUNCTIONS
    from devprof.store.readers import JSON
    from devprof.torch.bridge_build import BRIDGE
    from devprof.torch.sink_build import SINK

    of_plugins = (catalogue or discover()).native_builds
    return {spec.name: spec for spec in (BRIDGE, SINK, RANGES, FUNCTIONS, JSON, EXPORT, *of_plugins)}


def build(
    names: Annotated[list[str] | None, typer.Argument(help="What to build; everything when left out.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Build even what is cached.")] = False,
    as_json: Json = False,
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
    chosen = list(dict.fromkeys(names or known))
    made: dict[str, dict[str, object]] = {}
    with ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), _AT_ONCE)) as pool:
        outcomes = pool.map(lambda name: _outcome(known[name], may_be_left_out=not names, force=force), chosen)
        for name, outcome in zip(chosen, outcomes, strict=True):
            made[name] = outcome
            if not as_json:
                typer.echo(f"{name}: {_in_words(**outcome)}")
    if as_json:
        print_json({"libraries": made})
    failures = [failure for failure in catalogue.failures if failure.hook == "devprof_native_builds"]
    for failure in failures:
        typer.echo(f"plugin {failure.name}: FAILED in {failure.hook}: {failure.error} (devprof plugins -v)", err=True)
    if failures and not names:
        raise typer.Exit(1)


def _outcome(spec: NativeBuild, *, may_be_left_out: bool, force: bool) -> dict[str, object]:
    """Build a library, or find it built; return its path and how long it took, or why it was left out."""
    if may_be_left_out and find(spec) is None and (reason := missing(spec)):
        return {"left_out": reason}
    if not force and (found := find(spec)) is not None:
        return {"path": str(found), "built_s": None}
    began = time.monotonic()
    path = build_library(spec, force=force)
    return {"path": str(path), "built_s": time.monotonic() - began}


def _in_words(path: object = "", built_s: object = None, left_out: object = None) -> str:
    if left_out is not None:
        return f"left out, {left_out}"
    return f"already built, {path}" if built_s is None else f"built in {built_s:.1f} s, {path}"
