"""``devprof doctor``: what works here, what does not, and what to do about it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from typing import cast

import typer

from devprof import __version__
from devprof.cli.build import native_builds
from devprof.cli.output import Json, print_json
from devprof.contract import CONTRACT_VERSION, NativeBuild
from devprof.errors import BuildError
from devprof.native import cache_dir, find, missing, torch_facts
from devprof.registry import Catalogue, discover

__all__ = ["doctor"]

_REFUSED = "REFUSED"


def doctor(as_json: Json = False) -> None:
    """Say what works in this environment. Exit code 1 where something is broken (not merely absent)."""
    environment = _environment()
    libraries = {name: _library(spec) for name, spec in native_builds().items()}
    catalogue = discover()
    _ = catalogue.profilers, catalogue.doctor_lines  # ask for both before the failures are counted
    broken = bool(catalogue.failures) or any(state == _REFUSED for state, _ in libraries.values())
    if as_json:
        print_json(_as_dict(environment, libraries, catalogue, broken))
    else:
        _print(environment, libraries, catalogue)
    if broken:
        raise typer.Exit(1)


def _print(environment: list[str], libraries: Mapping[str, tuple[str, str]], catalogue: Catalogue) -> None:
    for line in environment:
        typer.echo(line)
    for name, (state, details) in libraries.items():
        typer.echo(f"library {name}: {state}{details}")
    for found in catalogue.profilers:
        typer.echo(f"plugin {found.name}: ok, {found.source}, torch device {found.capabilities.torch_device or 'none'}")
    for name, line in catalogue.doctor_lines:
        typer.echo(f"  {name}: {line}")
    for failure in catalogue.failures:
        typer.echo(f"plugin {failure.name}: FAILED in {failure.hook}: {failure.error} (devprof plugins -v)")
    if not catalogue.profilers and not catalogue.failures:
        typer.echo("plugins: none is installed (entry-point group devprof.plugins)")


def _as_dict(
    environment: list[str], libraries: Mapping[str, tuple[str, str]], catalogue: Catalogue, broken: bool
) -> dict[str, object]:
    plugins: dict[str, dict[str, object]] = {
        found.name: {"state": "ok", "source": found.source} for found in catalogue.profilers
    }
    plugins |= {one.name: {"state": "failed", "hook": one.hook, "error": str(one.error)} for one in catalogue.failures}
    for name, line in catalogue.doctor_lines:
        said: dict[str, object] = plugins.setdefault(name, {"state": "ok"})
        said["lines"] = [*cast("list[str]", said.get("lines", [])), line]
    states = {name: f"{state}{details}" for name, (state, details) in libraries.items()}
    return {"broken": broken, "environment": environment, "libraries": states, "plugins": plugins}


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


def _library(spec: NativeBuild) -> tuple[str, str]:
    """Return the state of a library, and what there is to say of it."""
    try:
        path = find(spec)
    except BuildError as error:
        return _REFUSED, f": {error}"
    if path is not None:
        return "built", f", {path}"
    if reason := missing(spec):
        return "not built and cannot be", f": {reason}"
    return "not built yet", f"; run `devprof build {spec.name}`"
