"""The ``devprof`` command.

Job: one command per file; `main` alone turns errors into exit codes.
In: words from a shell.
Out: text on a terminal, exit code 0 (all well), 1 (a check failed), 2 (wrong use or something is missing).
Never: does work that a room could do.
"""

from devprof.cli.main import main

__all__ = ["main"]
