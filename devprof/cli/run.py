"""``devprof run``: a program under the profiler."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from devprof.cli.convert import WRITERS, writer_for
from devprof.cli.output import Json, averages_as_rows, print_averages, print_json
from devprof.cli.program import Program, file_beside, host_named
from devprof.cli.torch_device import TorchDevice, absent, name_device, named
from devprof.errors import DevprofError, UsageError
from devprof.profiler import profile
from devprof.profiler.ranks import rank_here

__all__ = ["RUN_SETTINGS", "run"]

RUN_SETTINGS = {"allow_interspersed_args": False}
"""Settings of the command: what comes behind the program is the program's."""

_CHROME = (".json", ".json.gz")

_NOT_WHOLE = 3
"""Exit code with --strict, where the program was well and its trace is not."""

_Program = Annotated[
    list[str], typer.Argument(metavar="PROGRAM", help="A script with its arguments; options of devprof come before it.")
]
_Module = Annotated[bool, typer.Option("-m", help="PROGRAM is the name of a module, as for python -m.")]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help=f"The trace; its end says the format: {', '.join(WRITERS)}. Default: NAME.devprof."
    ),
]
_Host = Annotated[
    str, typer.Option(help="What records the program's own side: torch, python, or auto: torch where it is installed.")
]
_Activity = Annotated[
    list[str] | None,
    typer.Option("--activity", "-a", help="What to record: cpu, cuda, a plugin's name; may be repeated."),
]
_Ring = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Keep the latest part only: of the host, and of each plugin, SIZE bytes such as 64M."
    ),
]


def run(
    program: _Program,
    module: _Module = False,
    output: _Output = None,
    host: _Host = "auto",
    activity: _Activity = None,
    torch_device: TorchDevice = "",
    with_stack: Annotated[bool, typer.Option("--with-stack", help="Record Python functions.")] = False,
    record_shapes: Annotated[bool, typer.Option("--record-shapes", help="Keep shapes of inputs.")] = False,
    profile_memory: Annotated[bool, typer.Option("--profile-memory", help="Record allocations.")] = False,
    with_modules: Annotated[bool, typer.Option("--with-modules", help="Name modules.")] = False,
    with_flops: Annotated[bool, typer.Option("--with-flops", help="Estimate operations.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 where records were lost or a plugin misbehaved.")
    ] = False,
    ring: _Ring = None,
    top: Annotated[int, typer.Option(help="Rows of the table.", min=1)] = 20,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
    as_json: Json = False,
) -> None:
    """Run a Python script or module under the profiler, and write its trace; exits as the program does.

    The program finds its own arguments, path and __main__. What devprof prints goes to stderr, for stdout is the program's:
    with --json it is the last line. The trace is also written where the program raises or exits. With several ranks (RANK is
    set) each writes a file of its own.
    host=torch imports torch before the program starts: what torch reads from the environment must be set outside. A plugin
    takes part if torch's device has the name that it serves by then, as by --torch-device. host=python needs no torch; it
    records ranges, and with --with-stack every function. A program that profiles itself is run without devprof run.
    """
    wanted = Program(program[0], tuple(program[1:]), module)
    wanted.check()
    target = _target(output, wanted)
    writer_for(target)
    host = host_named(host)
    name_device(host, torch_device)
    device = named(host)
    prof = profile(
        activities=activity or None,
        host=host,
        with_stack=with_stack,
        record_shapes=record_shapes,
        profile_memory=profile_memory,
        with_modules=with_modules,
        with_flops=with_flops,
        **_limits(ring),
    )
    if (rank := rank_here()) is not None:
        prof.add_metadata_json("distributedInfo", json.dumps(rank.as_dict()))
    code = wanted.run_under(prof)
    try:
        _write(prof, target)
        if not quiet:
            _tell(prof, target, top, code if as_json else None)
        if not (quiet or as_json or activity):
            _tell_of_absent(prof, host, device)
    except (DevprofError, OSError) as error:
        typer.echo(f"devprof: {error}", err=True)
        code = code or 2
    raise typer.Exit(code or _verdict(prof, strict))


def _limits(ring: str | None) -> dict[str, Any]:
    """Return the options of a profile that keeps so many bytes.

    Raises:
        UsageError: the text is no size.
    """
    if ring is None:
        return {}
    found = re.fullmatch(r"(\d{1,15})\s*([kKmMgG]?)(?:i?B)?", ring.strip())
    if found is None:
        raise UsageError(f"--ring is {ring!r}; expected a number of bytes, such as 64M")
    return {"when_full": "ring", "max_bytes": int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]}


def _target(output: Path | None, program: Program) -> Path:
    """Return where the trace goes, apart from those of other ranks."""
    target = file_beside(output, f"{program.stem}.devprof")
    rank = rank_here()
    if rank is None or rank.world_size == 1:
        return target
    end = max((end for end in WRITERS if target.name.endswith(end)), key=len, default="")
    return target.with_name(f"{target.name.removesuffix(end)}.rank{rank.rank}{end}")


def _write(prof: profile, target: Path) -> None:
    if target.name.endswith(_CHROME) and not target.name.endswith((".speedscope.json", ".speedscope.json.gz")):
        prof.export_chrome_trace(str(target))  # with torch it is torch that writes, which needs nothing built
    else:
        writer_for(target)(prof.trace, target)


def _tell(prof: profile, target: Path, top: int, json_code: int | None) -> None:
    """Print what was recorded, to stderr.

    Args:
        prof: the finished profile.
        target: where its trace is.
        top: most rows.
        json_code: the program's exit code, for JSON; None: tables.
    """
    averages = prof.key_averages()
    report = _report(prof)
    if json_code is not None:
        facts = {"trace": str(target), "events": len(prof.trace), "exit_code": json_code}
        print_json({**facts, "averages": averages_as_rows(averages), "report": report and report.as_dict()}, err=True)
        return
    print_averages(averages, top, err=True)
    if report is not None and (report.ledgers or (report.host_events and any(report.host_events.lines()))):
        typer.echo(str(report), err=True)
    if not len(prof.trace):
        typer.echo("nothing was recorded: no op, no range and no device work; --with-stack records functions", err=True)
    typer.echo(f"{target}: {len(prof.trace)} events, {target.stat().st_size:,} bytes", err=True)


def _tell_of_absent(prof: profile, host: str, device: str | None) -> None:
    """Say which plugins took no part, where all were to; `device` is what torch's was called when the program began."""
    report = _report(prof)
    for line in absent(host, () if report is None else report.ledgers, device):
        typer.echo(line, err=True)


def _verdict(prof: profile, strict: bool) -> int:
    """Return the exit code of a program that was well, and say why where it is not 0."""
    report = _report(prof) if strict else None
    if report is None or report.clean:
        return 0
    for complaint in report.complaints():
        typer.echo(f"devprof: {complaint}", err=True)
    return _NOT_WHOLE


def _report(prof: profile) -> Any:
    try:
        return prof.report
    except UsageError:  # no plugin took part
        return None
