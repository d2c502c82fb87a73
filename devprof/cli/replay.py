"""``devprof replay``: a recording as a trace again, with faults on request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from devprof.cli.convert import WRITERS, writer_for
from devprof.cli.output import Json, averages_as_rows, print_averages, print_json
from devprof.errors import UsageError

__all__ = ["replay"]


def replay(
    recording: Annotated[Path, typer.Argument(help="A file of `devprof record`.")] = Path(),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"The trace; its end says the format: {', '.join(WRITERS)}.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", "-f", help="Faults to inject, such as drop:3; with commas, or given again."),
    ] = None,
    session: Annotated[int, typer.Option(help="Which of the recorded sessions, from 1.", min=1)] = 1,
    live_clock: Annotated[
        bool,
        typer.Option("--live-clock", help="Let the recorded clock run again, to be measured; else times are exact."),
    ] = False,
    list_faults: Annotated[bool, typer.Option("--list-faults", help="List the faults, and do nothing.")] = False,
    top: Annotated[int, typer.Option(help="Rows of the table.", min=1)] = 20,
    as_json: Json = False,
) -> None:
    """Profile a recording as if its device were here. Exit code 1 where the account of its records is not clean.

    The recorded ops run again, empty; every record is linked to the op that it was linked to. In a program of your own the same
    is DEVPROF_REPLAY=FILE, which makes a plugin named `replay`.
    """
    if list_faults:
        _list_faults()
        return
    prof = _profiled(recording, fault or [], session, exact=not live_clock)
    if not len(prof.trace):
        typer.echo(f"{recording}: session {session} holds neither records nor ops", err=True)
    if output is not None:
        writer_for(output)(prof.trace, output)
    averages = prof.key_averages()
    if as_json:
        facts = {"events": len(prof.trace), "averages": averages_as_rows(averages), "report": prof.report.as_dict()}
        print_json({**facts, "clean": prof.report.clean})
    else:
        print_averages(averages, top)
        typer.echo(str(prof.report))
        if output is not None:
            typer.echo(f"{output}: {len(prof.trace)} events, {output.stat().st_size:,} bytes")
    if not prof.report.clean:
        raise typer.Exit(1)


def _profiled(path: Path, faults: list[str], session: int, *, exact: bool) -> Any:
    from devprof.profiler import profile
    from devprof.registry import register, unregister
    from devprof.replay import ReplayProfiler, load, run_host_side
    from devprof.testing import plugin_of

    if not path.is_file():
        raise UsageError(f"there is no file {path}; name a recording, made with `devprof record`")
    found = load(path)
    if found.is_conformance:
        raise UsageError(f"{path} is a recorded run of the conformance kit: `devprof conform {path}` judges it again")
    if session > len(found.sessions):
        raise UsageError(f"{path} has {len(found.sessions)} session(s), and not {session}")
    found.sessions = [found.sessions[session - 1]]
    name = f"{found.plugin} replayed"
    profiler = ReplayProfiler(found, faults=faults, exact=exact, name=name)
    profiler.refuse_idle_faults("python")
    register(plugin_of(profiler), name)
    try:
        memory = bool(found.sessions[0].facts.get("profile_memory"))
        with profile(activities=["cpu", name], host="python", profile_memory=memory) as prof:
            run_host_side(profiler.player, paced=not exact)
    finally:
        unregister(name)
    return prof


def _list_faults() -> None:
    from devprof.replay import FAULTS

    for word, kind in FAULTS.items():
        usual = f" (usually {kind.usual:g})" if kind.usual else ""
        typer.echo(f"{word:14} {kind.what}{usual}")
