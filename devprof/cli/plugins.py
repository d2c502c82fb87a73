"""``devprof plugins``: what is installed, and why something is not usable."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from devprof.cli.output import Json, print_json
from devprof.registry import Catalogue, discover

__all__ = ["plugins"]


def plugins(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the tracebacks of failures.")] = False,
    as_json: Json = False,
) -> None:
    """List the installed plugins. Exit code 1 where one of them failed."""
    catalogue = discover()
    if as_json:
        print_json(_as_dict(catalogue))
    else:
        _print(catalogue, verbose)
    if catalogue.failures:
        raise typer.Exit(1)


def _print(catalogue: Catalogue, verbose: bool) -> None:
    console = Console()
    console.print(_table(catalogue))
    for failure in catalogue.failures:
        console.print(f"[red]{failure.name}[/red] ({failure.hook}): {failure.error}", highlight=False, soft_wrap=True)
        if verbose:
            console.print(failure.traceback, markup=False, highlight=False, soft_wrap=True)


def _as_dict(catalogue: Catalogue) -> dict[str, object]:
    plugins = [
        {
            "name": found.name,
            "version": found.version or None,
            "contract": list(found.capabilities.contract_version),
            "torch_device": found.capabilities.torch_device or None,
            "records": sorted(kind.label for kind in found.available_activities),
            "source": found.source,
        }
        for found in catalogue.profilers
    ]
    failures = [
        {"name": one.name, "hook": one.hook, "error": str(one.error), "traceback": one.traceback}
        for one in catalogue.failures
    ]
    return {"plugins": plugins, "failures": failures}


def _table(catalogue: Catalogue) -> Table:
    table = Table("plugin", "version", "contract", "torch device", "records", "from")
    for found in catalogue.profilers:
        table.add_row(
            found.name,
            found.version or "-",
            ".".join(map(str, found.capabilities.contract_version)),
            found.capabilities.torch_device or "-",
            ", ".join(sorted(kind.label for kind in found.available_activities)),
            found.source,
        )
    return table
