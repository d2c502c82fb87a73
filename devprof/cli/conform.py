"""``devprof conform``: does a plugin keep what the contract promises? A report, and an exit code for CI."""

from __future__ import annotations

import importlib
import os
from enum import Enum
from typing import Annotated, Any

import typer

from devprof.cli.output import Json, print_json
from devprof.errors import UsageError

__all__ = ["conform"]


class Host(Enum):
    """Under which host to try a plugin."""

    PYTHON = "python"
    TORCH = "torch"
    BOTH = "both"


def conform(
    plugin: Annotated[str, typer.Argument(help="Name of an installed plugin, or 'module:attribute' of a profiler.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Number of a check, such as C301, or the start of one; may be given again.")
    ] = None,
    host: Annotated[
        Host, typer.Option(help="devprof's own host, torch's, or both; torch only where it runs here.")
    ] = Host.BOTH,
    workload: Annotated[
        str, typer.Option(help="'module:attribute' of what makes the device work; default: the plugin's own.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Check a plugin against every promise of the contract. Exit code 1 where one is broken."""
    # Kineto writes two lines per session, and there are hundreds
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    from devprof.testing.conformance import Bench, Device, Report, Subject, features_of, made, run_checks, workload_of

    checks = _chosen(only or [])
    with Subject(plugin) as subject:
        device = Device(made(_attribute(workload)) if workload else workload_of(plugin))
        hosts = _hosts(host, Bench(subject, device))
        findings = run_checks(checks, lambda name: Bench(subject, device, name), hosts)
        report = Report(subject.title, findings, {} if only else features_of(Bench(subject, device)))
    if as_json:
        print_json(report.as_dict())
    else:
        for line in report.lines():
            typer.echo(line)
        if not device:
            typer.echo(
                f"{plugin} has no workload: give one with --workload, or an entry point of group devprof.workloads"
            )
    if not report.passed:
        raise typer.Exit(1)


def _chosen(only: list[str]) -> list[Any]:
    from devprof.testing.conformance import CHECKS

    wanted = [number.upper() for number in only]
    unknown = [number for number in wanted if not any(check.number.startswith(number) for check in CHECKS)]
    if unknown:
        raise UsageError(
            f"there is no check {', '.join(unknown)}; docs/conformance.md lists those from {CHECKS[0].number} on"
        )
    return [check for check in CHECKS if not wanted or check.number.startswith(tuple(wanted))]


def _hosts(host: Host, bench: Any) -> list[str]:
    from devprof.testing.conformance import without_torch

    if host is Host.PYTHON:
        return ["python"]
    reason = without_torch(bench)
    if not reason:
        return ["torch"] if host is Host.TORCH else ["python", "torch"]
    if host is Host.TORCH:
        raise UsageError(f"the plugin cannot be tried under torch: {reason}")
    return ["python"]


def _attribute(path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"workload {path!r} cannot be imported: {error}; expected 'module:attribute'") from error
