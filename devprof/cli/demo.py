"""``devprof demo``: the main job on the simulated device, checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from devprof.cli.output import Json, print_json
from devprof.errors import UsageError
from devprof.native import torch_facts

if TYPE_CHECKING:
    from devprof.torch.demo import DemoResult

__all__ = ["demo"]

_ABOUT_THE_TABLE = """\
(torch's own table: a range is shown with its span on the device, which is no work and may exceed 100 %)
"""


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the trace.")] = Path(
        "devprof_demo.trace.json"
    ),
    as_json: Json = False,
) -> None:
    """Profile a small training step on the simulated openreg device; exit code 1 where a check fails."""
    if torch_facts() is None:
        raise UsageError("the demo profiles a torch program, and torch is not installed; `pip install devprof[torch]`")
    from devprof.torch.demo import run_demo

    result = run_demo(output)
    if as_json:
        checks = [{"what": one.what, "found": one.found, "passed": one.passed} for one in result.checks]
        print_json({"trace": str(output.resolve()), "checks": checks, "report": result.report.as_dict()})
    else:
        _print(result, output)
    if not all(check.passed for check in result.checks):
        raise typer.Exit(1)


def _print(result: DemoResult, output: Path) -> None:
    typer.echo(result.table)
    typer.echo(_ABOUT_THE_TABLE)
    typer.echo("Loss ledger")
    typer.echo(str(result.report))
    typer.echo("\nChecked")
    for check in result.checks:
        typer.echo(f"  {'ok  ' if check.passed else 'FAIL'} {check.what}: {check.found}")
    typer.echo(f"\nTrace: {output.resolve()}  (open it in https://ui.perfetto.dev or chrome://tracing)")
