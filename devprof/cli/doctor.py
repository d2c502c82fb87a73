"""``devprof doctor``: what works here, what does not, and what to do about it."""

from __future__ import annotations

import os
import platform
import sys

import typer

from devprof import __version__
from devprof.cli.build import native_builds
from devprof.contract import CONTRACT_VERSION, NativeBuild
from devprof.errors import BuildError
from devprof.native import cache_dir, find, missing, torch_facts
from devprof.registry import discover

__all__ = ["doctor"]


def doctor() -> None:
    """Say what works in this environment. Exit code 1 where something is broken (not merely absent)."""
    for line in _environment():
        typer.echo(line)
    broken = [_library(spec) for spec in native_builds().values()]
    catalogue = discover()
    for found in catalogue.profilers:
        typer.echo(f"plugin {found.name}: ok, {found.source}, torch device {found.capabilities.torch_device or 'none'}")
    for failure in catalogue.failures:
        typer.echo(f"plugin {failure.name}: FAILED in {failure.hook}: {failure.error} (devprof plugins -v)")
    if not catalogue.profilers and not catalogue.failures:
        typer.echo("plugins: none is installed (entry-point group devprof.plugins)")
    if any(broken) or catalogue.failures:
        raise typer.Exit(1)


def _environment() -> list[str]:
    torch = torch_facts()
    where = f"{platform.system()} {platform.machine()}"
    switches = {name: value for name, value in sorted(os.environ.items()) if name.startswith("DEVPROF_")}
    return [
        f"devprof {__version__}, contract {'.'.join(map(str, CONTRACT_VERSION))}, Python {sys.version.split()[0]}, {where}",
        f"torch: {torch.version}" if torch else "torch: not installed; torch-free use works, torch sessions do not",
        f"cache: {_cache()}",
        f"switches: {switches or 'none set'}",
    ]


def _cache() -> str:
    try:
        return str(cache_dir())
    except BuildError as error:  # a user without a home
        return f"none: {error}"


def _library(spec: NativeBuild) -> bool:
    """Print the state of a library; True where it is broken."""
    try:
        path = find(spec)
    except BuildError as error:
        typer.echo(f"library {spec.name}: REFUSED: {error}")
        return True
    if path is not None:
        typer.echo(f"library {spec.name}: built, {path}")
    elif reason := missing(spec):
        typer.echo(f"library {spec.name}: not built and cannot be: {reason}")
    else:
        typer.echo(f"library {spec.name}: not built yet; run `devprof build {spec.name}`")
    return False
