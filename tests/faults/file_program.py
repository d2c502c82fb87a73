"""Writes a trace in every way there is, each in a child of its own that something happens to; tells what was seen.

    file_program.py FOLDER

A process by itself: children are forked, so it has one thread, and some of them become another user.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import devprof
from devprof.cli.convert import WRITERS
from devprof.cli.report import report
from devprof.profiler import tensorboard_trace_handler

EARLIER = "what was there before"
_SMALL = 64  # bytes that a file may have where the disk is full
_NOBODY = 65534


def recorded() -> devprof.profile:
    """Return a profile of a hundred ranges."""
    with devprof.profile(activities=["cpu"], host="python", with_stack=True) as prof:
        for number in range(100):
            with devprof.record_function(f"range {number}"):
                len("x")
    return prof


def operations(prof: devprof.profile, source: Path) -> dict[str, Callable[[Path], object]]:
    """Return every way to write a file, by a name that is also the end of the file's."""
    ways: dict[str, Callable[[Path], object]] = {
        end: lambda path, write=write: write(prof.trace, path)  # type: ignore[misc]
        for end, write in WRITERS.items()
    }
    devprof.load(source)  # a child that is another user can import nothing
    ways["prof.json"] = lambda path: prof.export_chrome_trace(str(path))
    ways["report.html"] = lambda path: report(source, output=path)
    return ways


def disk_full() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL, _SMALL))


def no_permission() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def at_a_write(number: int, act: Callable[[], object]) -> Callable[[], None]:
    """Return what makes `act` happen in the middle: at a write to a file, counted from 0."""

    def arm() -> None:
        left = [number]

        def watch(frame: FrameType, event: str, argument: Any) -> None:
            if event == "c_call" and getattr(argument, "__name__", "") == "write" and "codec" not in repr(argument):
                left[0] -= 1
                if left[0] < 0:
                    sys.setprofile(None)
                    act()

        sys.setprofile(watch)

    return arm


CONDITIONS: dict[str, Callable[[], None]] = {
    "disk full": disk_full,
    "permission": no_permission,
    "interrupted": at_a_write(0, lambda: signal.raise_signal(signal.SIGINT)),
    "killed": at_a_write(0, lambda: os.kill(os.getpid(), signal.SIGKILL)),
}


def in_child(body: Callable[[], object]) -> dict[str, Any]:
    """Run `body` in a forked child; return how it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        ended: dict[str, Any] = {"error": None, "says": ""}
        try:
            body()
        except BaseException as error:  # noqa: BLE001 - told to the test, whatever it is
            ended = {"error": type(error).__name__, "says": str(error)}
        sys.setprofile(None)
        os.write(writer, json.dumps(ended).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {**(json.loads(text) if text else {"error": None, "says": ""}), "status": status}


def one(folder: Path, name: str, write: Callable[[Path], object], arm: Callable[[], None]) -> dict[str, Any]:
    """Let one operation meet one condition; return how it ended and what is in the folder then."""
    folder.mkdir()
    target = folder / f"trace{name if name.startswith('.') else '.' + name}"
    target.write_text(EARLIER)
    if arm is no_permission:
        folder.chmod(0o555)
    ended = in_child(lambda: (arm(), write(target)))
    folder.chmod(0o755)
    return {
        **ended,
        "target": str(target),
        "earlier": target.read_text(errors="replace") == EARLIER,
        "left": left(folder),
    }


def handler(folder: Path, prof: devprof.profile, arm: Callable[[], None]) -> dict[str, Any]:
    """As `one`, for the handler that makes files in a folder."""
    folder.mkdir()
    (folder / "trace.earlier").write_text(EARLIER)
    if arm is no_permission:
        folder.chmod(0o555)
    ended = in_child(lambda: (arm(), tensorboard_trace_handler(folder)(prof)))
    folder.chmod(0o755)
    return {**ended, "target": str(folder), "earlier": True, "left": left(folder)}


def left(folder: Path) -> dict[str, int]:
    """Return what is in a folder beside the file that was there before, with its size in bytes."""
    found = (path for path in folder.iterdir() if path.read_text(errors="replace") != EARLIER)
    return {path.name: path.stat().st_size for path in found}


def main(folder: Path) -> None:
    """Do everything; print what was seen."""
    prof = recorded()
    source = folder / "source.devprof"
    prof.trace.save(source)
    seen: dict[str, dict[str, Any]] = {}
    for number, (name, write) in enumerate(operations(prof, source).items()):
        seen[name] = {
            condition: one(folder / f"{number} {condition}", name, write, arm) for condition, arm in CONDITIONS.items()
        }
    seen["handler"] = {
        condition: handler(folder / f"handler {condition}", prof, arm) for condition, arm in CONDITIONS.items()
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
