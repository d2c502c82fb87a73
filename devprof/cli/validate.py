"""``devprof validate``: what does not hold of a trace, with an exit code for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devprof import rules
from devprof.cli.output import Json, echo, print_json, read
from devprof.errors import TraceFileError, UsageError
from devprof.rules import Finding, Severity

__all__ = ["validate"]


def validate(
    trace_files: Annotated[list[Path], typer.Argument(help="Traces, in any format that devprof reads.")],
    ignore: Annotated[list[str] | None, typer.Option(help="Name of a rule to leave out; may be given again.")] = None,
    fail_on: Annotated[str, typer.Option(help="Least severity for exit code 1: info, warning or error.")] = "error",
    as_json: Json = False,
) -> None:
    """Check traces against every rule. Exit code 1 where one is broken, 2 where a file cannot be read, after all others."""
    least = _severity(fail_on)
    findings, unread = _checked(trace_files, ignore or ())
    if as_json:
        found_in = {path: [_as_dict(one) for one in found] for path, found in findings.items()}
        print_json({**found_in, **{path: [_as_dict(_unreadable(why))] for path, why in unread.items()}})
    else:
        for path, found in findings.items():
            echo(f"{path}: {len(found) or 'no'} finding{'s' if len(found) != 1 else ''}")
            for one in found:
                echo(f"  {one}")
    for why in unread.values():
        echo(f"devprof: {why}", err=True)
    if unread:
        raise typer.Exit(2)
    if any(one.severity >= least for found in findings.values() for one in found):
        raise typer.Exit(1)


def _checked(paths: list[Path], ignore: list[str] | tuple[()]) -> tuple[dict[str, list[Finding]], dict[str, str]]:
    """Return the findings of each trace, and why each of the others cannot be read."""
    findings: dict[str, list[Finding]] = {}
    unread: dict[str, str] = {}
    for path in paths:
        try:
            trace = read(path)
        except TraceFileError as error:
            unread[str(path)] = str(error)
        else:
            findings[str(path)] = rules.check(trace, ignore=ignore)
    return findings, unread


def _unreadable(why: str) -> Finding:
    """Return in a finding's form, for programs, that there are none because the file cannot be read."""
    return Finding("file.readable", Severity.ERROR, 1, why)


def _severity(text: str) -> Severity:
    names = [severity.name.lower() for severity in Severity]
    if text.lower() not in names:
        raise UsageError(f"there is no severity {text!r}; expected one of {', '.join(names)}")
    return Severity[text.upper()]


def _as_dict(found: Finding) -> dict[str, object]:
    facts = {"rule": found.rule, "severity": found.severity.name.lower(), "count": found.count}
    return {**facts, "says": found.says, "events": list(found.events)}
