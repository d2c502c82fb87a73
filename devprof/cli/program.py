"""A Python program, run as ``python`` would run it, in this process."""

from __future__ import annotations

import runpy
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from devprof.cli.termination import ended_by_sigterm
from devprof.errors import UsageError
from devprof.native import torch_facts

__all__ = ["Program", "file_beside", "host_named"]

_OURS = (__file__, runpy.__file__, "<frozen runpy>")
_INTERRUPTED = 130  # what a shell sees of a program that SIGINT ended


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its arguments.

    Attributes:
        name: a script, a folder or archive with a ``__main__.py``, or a module's name.
        arguments: what it finds in `sys.argv` behind its own name.
        is_module: `name` is that of a module, as for ``python -m``.
    """

    name: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    def check(self) -> None:
        """Refuse what is not there, before anything starts.

        Raises:
            UsageError: there is no such file; a module is looked for when it is run, in its own surroundings.
        """
        if not self.is_module and not Path(self.name).exists():
            raise UsageError(f"there is no file {self.name}; for a module write `devprof run -m {self.name}`")

    @property
    def stem(self) -> str:
        """A short name, for files: of ``train.py`` and of the module ``jobs.train`` it is ``train``."""
        if not self.is_module:
            return Path(self.name).resolve().stem or "program"
        return self.name.removesuffix(".__main__").rpartition(".")[2]

    def run(self) -> BaseException | None:
        """Run it as ``__main__``, with `sys.argv` and `sys.path` as Python would set them.

        Returns:
            What it ended with, also `SystemExit` and `KeyboardInterrupt`, without our frames; None where it ran to its end.

        Raises:
            UsageError: there is no such module.
        """
        sys.argv = [self.name, *self.arguments]
        self._set_path()
        try:
            with ended_by_sigterm():
                if self.is_module:
                    runpy.run_module(self.name, run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(self.name, run_name="__main__")
        except BaseException as error:  # noqa: BLE001 - however it ended, its trace is to be written
            error.__traceback__ = _own_frames(error.__traceback__)
            if self.is_module and isinstance(error, ImportError) and error.__traceback__ is None:
                raise UsageError(f"cannot run {self.name} as a module: {error}") from None
            return error
        return None

    def run_under(self, profile: AbstractContextManager[object]) -> int:
        """Run it inside of a profile, print what it died of as Python would, and return what Python would have exited with.

        Raises:
            UsageError: as `run`.
        """
        with profile:
            ended_by = self.run()
        sys.stdout.flush()
        if ended_by is not None:
            _show(ended_by)
        return _exit_code(ended_by)

    def _set_path(self) -> None:
        """Put the program's folder where Python had put ours; `runpy` does so for folders and archives."""
        if sys.flags.safe_path:
            return
        if sys.path:
            del sys.path[0]
        script = Path(self.name)
        if self.is_module:
            sys.path.insert(0, str(Path.cwd()))
        elif script.suffix == ".pyc" or not _holds_main(script):
            sys.path.insert(0, str(script.resolve().parent))


def file_beside(output: Path | None, name: str) -> Path:
    """Return where a command writes: absolute, for the program may change the folder.

    Raises:
        UsageError: there is no such folder.
    """
    target = (output or Path(name)).absolute()
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {target}: there is no directory {target.parent}; make it first")
    return target


def host_named(choice: str) -> str:
    """Return the host of a profile; ``auto`` is torch's where torch is installed, for the program is not imported yet."""
    return ("torch" if torch_facts() else "python") if choice == "auto" else choice


def _holds_main(path: Path) -> bool:
    """Say whether a path is a folder or an archive that Python runs the ``__main__.py`` of."""
    if path.is_dir():
        return True
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename in _OURS:
        trace = trace.tb_next
    return trace


def _show(error: BaseException) -> None:
    """Print what a program died of, as Python would."""
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
    elif error.code is not None and not isinstance(error.code, int):
        print(error.code, file=sys.stderr)


def _exit_code(error: BaseException | None) -> int:
    """Return what Python would have exited with."""
    if error is None:
        return 0
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return 1
