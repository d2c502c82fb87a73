"""``devprof attach``: have a running program recorded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from devprof.cli.output import Json, print_json
from devprof.errors import CaptureError, UsageError
from devprof.trigger import Answer, CaptureRequest
from devprof.trigger import attach as attach_to
from devprof.trigger import listening as who_listens
from devprof.trigger.request import FORMATS

__all__ = ["attach"]

_DEFAULT_S = 5.0

_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help=f"Move the trace there; its end says the format: {', '.join(FORMATS)}. Default: it stays in the "
        "folder that the program opted in for, as .devprof.",
    ),
]


def attach(
    pid: Annotated[
        int | None, typer.Argument(metavar="[PID]", help="The process; without one: list who listens.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", "-s", help="How long; default 5 where no steps are said.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", "-n", help="How many steps of the program; or the seconds, if sooner.")
    ] = None,
    output: _Output = None,
    activity: Annotated[
        list[str] | None,
        typer.Option("--activity", "-a", help="What to record: cpu, a plugin's name; may be repeated."),
    ] = None,
    with_stack: Annotated[bool, typer.Option("--with-stack", help="Record Python functions.")] = False,
    record_shapes: Annotated[bool, typer.Option("--record-shapes", help="Keep shapes of inputs.")] = False,
    profile_memory: Annotated[bool, typer.Option("--profile-memory", help="Record allocations.")] = False,
    as_json: Json = False,
) -> None:
    """Have a running program recorded for a while, and print where its trace is. Ctrl-C ends the recording early.

    The program must have opted in: with DEVPROF_ON_DEMAND=1 in its environment, or with devprof.on_demand() in its code. Only
    the same user can attach; nothing goes over a network, and the program writes into the folder of its opt-in only.
    """
    if pid is None:
        _list(as_json)
        return
    if seconds is None and steps is None:
        seconds = _DEFAULT_S
    request = CaptureRequest(
        seconds=seconds,
        steps=steps,
        format=_format(output),
        activities=tuple(activity or ()),
        with_stack=with_stack,
        record_shapes=record_shapes,
        profile_memory=profile_memory,
    )
    if output is not None:
        _check_place(output)
    answer = attach_to(pid, request, lambda: typer.echo(f"process {pid} records ...", err=True))
    path = _moved(answer, output)
    if as_json:
        print_json({**answer.as_dict(), "path": str(path)})
        return
    for note in answer.notes:
        typer.echo(note, err=True)
    typer.echo(_summary(answer), err=True)
    typer.echo(str(path))


def _list(as_json: bool) -> None:
    found = who_listens()
    if as_json:
        print_json({"listening": [{"pid": one.pid, "command": one.command} for one in found]})
        return
    for one in found:
        typer.echo(f"{one.pid}  {one.command:.120}")
    if not found:
        typer.echo("no process of this user listens; start one with DEVPROF_ON_DEMAND=1", err=True)


def _format(output: Path | None) -> str:
    if output is None:
        return FORMATS[0]
    for ending in sorted(FORMATS, key=len, reverse=True):
        if output.name.endswith(ending) and not output.name.endswith((".speedscope.json", ".speedscope.json.gz")):
            return ending
    raise UsageError(
        f"a capture cannot be written as {output.name!r}; its name should end with one of {', '.join(FORMATS)}"
    )


def _moved(answer: Answer, output: Path | None) -> Path:
    """Return where the trace is; it is moved by this process, with this process's rights."""
    path = Path(answer.path)
    if output is None:
        return path
    ending = next(one for one in FORMATS[::-1] if path.name.endswith(one))
    target = output.absolute()
    if not target.name.endswith(ending):  # the program could not write what was asked for, and said so
        target = target.with_name(target.name.removesuffix(_format(output)) + ending)
    try:
        _check_place(target)
        shutil.move(path, target)
    except (OSError, UsageError) as error:
        raise CaptureError(f"the trace is {path}; it could not be moved: {error}") from error
    return target


def _check_place(target: Path) -> None:
    """Refuse what cannot be written to, before anything is recorded."""
    folder = target.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"there is no directory {folder}; make it first")
    if target.is_dir():
        raise UsageError(f"{target} is a directory; name a file in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"no permission to make a file in {folder}")


def _summary(answer: Answer) -> str:
    endings = {
        "time": "the time was over",
        "steps": "the steps were done",
        "asked": "ended from here",
        "program": "a profile of the program's own began",
        "exit": "the program ended",
    }
    parts = [f"{answer.seconds:.2f} s", f"{answer.size_bytes:,} bytes", f"recorded by {answer.host}"]
    if answer.events is not None:
        parts.insert(1, f"{answer.events} events")
    if answer.steps is not None:
        parts.insert(1, f"{answer.steps} steps")
    return f"{', '.join(parts)}; {endings.get(answer.ended_by, answer.ended_by)}"
