"""The command's root: registers the subcommands and maps errors to exit codes."""

from __future__ import annotations

import sys

import typer

from devprof import __version__
from devprof.cli.attach import attach
from devprof.cli.build import build
from devprof.cli.conform import conform
from devprof.cli.convert import convert
from devprof.cli.demo import demo
from devprof.cli.diff import diff
from devprof.cli.doctor import doctor
from devprof.cli.merge import merge
from devprof.cli.new import new
from devprof.cli.output import echo
from devprof.cli.plugins import plugins
from devprof.cli.record import record
from devprof.cli.replay import replay
from devprof.cli.report import report
from devprof.cli.run import RUN_SETTINGS, run
from devprof.cli.summary import summary
from devprof.cli.validate import validate
from devprof.cli.view import view
from devprof.errors import DevprofError

__all__ = ["app", "main"]

app = typer.Typer(
    name="devprof",
    help="Write a PyTorch profiler backend in Python.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command(context_settings=RUN_SETTINGS)(run)
app.command(context_settings=RUN_SETTINGS)(record)
for command in (
    attach,
    summary,
    report,
    view,
    diff,
    validate,
    convert,
    merge,
    new,
    conform,
    replay,
    plugins,
    doctor,
    build,
    demo,
):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"devprof {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show it.")) -> None:
    """Write a PyTorch profiler backend in Python."""


def main() -> None:
    """Run the command line; devprof's own errors, and those of the system, become one line and exit code 2."""
    try:
        app(prog_name="devprof")
    except (DevprofError, OSError) as error:
        echo(f"devprof: {error}", err=True)
        sys.exit(2)
