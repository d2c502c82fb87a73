"""``devprof record``: a program under the profiler, and what a plugin delivered meanwhile as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from devprof.cli.output import Json, print_json
from devprof.cli.program import Program, file_beside, host_named
from devprof.cli.torch_device import TorchDevice, name_device
from devprof.errors import DevprofError, UsageError

__all__ = ["record"]

_Program = Annotated[
    list[str], typer.Argument(metavar="PROGRAM", help="A script with its arguments; options of devprof come before it.")
]


def record(
    program: _Program,
    module: Annotated[bool, typer.Option("-m", help="PROGRAM is the name of a module, as for python -m.")] = False,
    plugin: Annotated[str, typer.Option(help="Which plugin; needed where several are installed.")] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file; default: NAME.devrec.")] = None,
    host: Annotated[str, typer.Option(help="torch, python, or auto: torch where it is installed.")] = "auto",
    torch_device: TorchDevice = "",
    profile_memory: Annotated[bool, typer.Option("--profile-memory", help="Record the device's memory too.")] = False,
    keep_texts: Annotated[
        bool, typer.Option("--keep-texts", help="Keep names of your own ranges, and paths and names in other texts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a program, and save what a plugin delivered: to be replayed where there is no device.

    The file holds the plugin's records, clock readings, losses and answers, and when which op ran. It holds no date, path, host
    or user name, and the ranges that you named are numbered, unless you say --keep-texts. Replay it with `devprof replay`. To
    record a run of the conformance kit: `devprof conform PLUGIN --record FILE`. A program that profiles itself cannot be
    recorded so: take its profile out.
    """
    from devprof.profiler import profile
    from devprof.replay import Recorder, save

    wanted = Program(program[0], tuple(program[1:]), module)
    wanted.check()
    name = plugin or _only_plugin()
    target = file_beside(output, f"{wanted.stem}.devrec")
    host = host_named(host)
    name_device(host, torch_device, name)
    with Recorder(name) as recorder:
        prof = profile(
            activities=["cpu", name],
            host=host,
            profile_memory=profile_memory,
        )
        code = wanted.run_under(prof)
    try:
        recorder.note_host(prof.trace)
        recording = recorder.recording(keep_texts=keep_texts)
        if not _holds_something(recording.sessions[-1]):
            raise UsageError(f"{name} delivered no record, so there is nothing to save")
        save(recording, target)
    except (DevprofError, OSError) as error:
        typer.echo(f"devprof: {error}", err=True)
        raise typer.Exit(code or 2) from None
    _tell(recording, target, recorder.n_malformed, code if as_json else None)
    raise typer.Exit(code)


def _tell(recording: Any, target: Path, n_malformed: int, json_code: int | None) -> None:
    """Print what was recorded, to stderr; `json_code` is the program's exit code, for JSON."""
    session, name, n_bytes = recording.sessions[-1], recording.plugin, target.stat().st_size
    n_records = sum(map(len, session.batches))
    if json_code is not None:
        facts = {"recording": str(target), "plugin": name, "records": n_records, "host_ranges": len(session.host)}
        print_json({**facts, "bytes": n_bytes, "exit_code": json_code}, err=True)
        return
    size = f"{n_bytes:,} bytes"
    typer.echo(f"{target}: {n_records} records of {name}, {len(session.host)} ranges of the host, {size}", err=True)
    if n_malformed:
        typer.echo(f"{n_malformed} records that no column can hold are not in it", err=True)


def _holds_something(session: Any) -> bool:
    """Say whether a plugin delivered anything, or said that it lost something."""
    return bool(sum(map(len, session.batches)) or session.dropped)


def _only_plugin() -> str:
    from devprof.registry import discover

    names = [one.name for one in discover().profilers]
    if len(names) != 1:
        raise UsageError(f"say which plugin with --plugin: installed are {', '.join(names) or 'none'}")
    return names[0]
