"""``devprof plugins``: what is installed, and why something is not usable."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from devprof.registry import Catalogue, discover

__all__ = ["plugins"]


def plugins(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the tracebacks of failures.")] = False,
) -> None:
    """List the installed plugins. Exit code 1 where one of them failed."""
    catalogue = discover()
    console = Console()
    console.print(_table(catalogue))
    for failure in catalogue.failures:
        console.print(f"[red]{failure.name}[/red] ({failure.hook}): {failure.error}", highlight=False, soft_wrap=True)
        if verbose:
            console.print(failure.traceback, markup=False, highlight=False, soft_wrap=True)
    if catalogue.failures:
        raise typer.Exit(1)


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
