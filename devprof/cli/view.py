"""``devprof view``: look at a trace in a Perfetto UI that needs no network."""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from devprof import export
from devprof.cli.output import Json, TraceFile, read
from devprof.cli.perfetto_ui import ui_files
from devprof.cli.view_server import ServedTrace, ViewServer
from devprof.errors import UsageError
from devprof.store import Trace

__all__ = ["view"]

_SUFFIX = ".pftrace"
_TRACE_SUFFIX = re.compile(r"(\.(json|pftrace|devprof|sqlite|nvprof|gz))+$", re.IGNORECASE)


def view(
    trace_file: TraceFile,
    port: Annotated[int, typer.Option(help="Port to listen on; 0: a free one.", min=0, max=65535)] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only say the address; open no browser.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Stop when a browser has loaded the trace.")] = False,
    as_json: Json = False,
) -> None:
    """Show a trace in an offline Perfetto UI, served to this machine only, at an address that cannot be guessed."""
    files = ui_files()
    with _nameless_file(read(trace_file)) as descriptor:
        trace = ServedTrace(_shown_name(trace_file), descriptor)
        try:
            server = ViewServer(files, trace, port=port)
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port}: {error.strerror}; without --port a free one is used"
            ) from error
        with server:
            try:
                _say(server.url, as_json)
                if not no_open:
                    # a browser for terminals blocks until it is closed
                    threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
                server.serve(once=once)
            except KeyboardInterrupt:
                typer.echo("", err=True)  # the shell's prompt below ^C


def _say(url: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"url": url}))  # one line, for programs that wait for it
    else:
        typer.echo(f"{url}\nCtrl-C stops.")


@contextmanager
def _nameless_file(trace: Trace) -> Iterator[int]:
    """Give a file that holds the trace and has no name, so that nothing is left however the command ends."""
    with tempfile.TemporaryDirectory(prefix="devprof-view-") as folder:
        path = Path(folder) / f"trace{_SUFFIX}"
        export.perfetto_trace(trace, path)
        descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _shown_name(path: Path) -> str:
    stem = _TRACE_SUFFIX.sub("", path.name)
    return (re.sub(r"[^A-Za-z0-9._-]+", "_", stem)[:80].strip(".") or "trace") + _SUFFIX
