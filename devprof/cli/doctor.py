"""``devprof doctor``: what works here, what does not, and what to do about it."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Mapping
from typing import Annotated, cast

import typer

from devprof import __version__
from devprof.cli.build import native_builds
from devprof.cli.output import Json, print_json
from devprof.cli.trial import tried
from devprof.contract import CONTRACT_VERSION, NativeBuild
from devprof.errors import BuildError
from devprof.native import cache_dir, find, missing, torch_facts
from devprof.registry import Catalogue, discover

__all__ = ["doctor"]

_REFUSED = "REFUSED"


def doctor(
    as_json: Json = False,
    try_plugins: Annotated[
        bool, typer.Option("--try", help="Profile nothing with each plugin, for a moment; this touches their devices.")
    ] = False,
) -> None:
    """Say what works in this environment, and why a profile may stay empty. Exit code 1 where something is broken."""
    environment = _environment()
    libraries = {name: _library(spec) for name, spec in native_builds().items()}
    catalogue = discover()
    _ = catalogue.profilers, catalogue.doctor_lines  # ask for both before the failures are counted
    host = _torch_host()
    trials = list(tried(catalogue.profilers)) if try_plugins else []
    broken = bool(catalogue.failures) or any(state == _REFUSED for state, _ in libraries.values())
    broken |= any(not well for _, well, _ in trials)
    if as_json:
        facts = _as_dict(environment, libraries, catalogue, broken)
        tries = {name: {"well": well, "says": says} for name, well, says in trials}
        print_json({**facts, "torch": [{"well": well, "says": says} for well, says in host], "tried": tries})
    else:
        _print(environment, libraries, catalogue)
        for well, says in host:
            typer.echo(says if well else f"NOTE {says}")
        for name, well, says in trials:
            typer.echo(f"plugin {name}: {says}" if well else f"plugin {name}: FAILED: {says}")
        typer.echo(_how_to_ask(catalogue))
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


def _torch_host() -> list[tuple[bool, str]]:
    """Return what there is to say of torch as a host; nothing where it is not installed."""
    if not torch_facts():
        return []
    try:
        importlib.import_module("torch")  # first: it runs devprof's entry point, which is one of the things to look at
        return list(importlib.import_module("devprof.torch.examination").examine())
    except Exception as error:  # noqa: BLE001 - a torch that cannot be imported is what the doctor has to tell
        return [(False, f"torch cannot be used: {type(error).__name__}: {error}")]


def _how_to_ask(catalogue: Catalogue) -> str:
    names = ", ".join(repr(name) for name in ("cpu", *(one.name for one in catalogue.profilers)))
    return f"to record all of them: devprof.profile(activities=[{names}])"


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
