"""Run the command as a user runs it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["devprof"]


def devprof(*words: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``devprof`` with these words, in a folder, with extra environment variables; what it prints is kept as text."""
    return subprocess.run(
        [sys.executable, "-m", "devprof", *map(str, words)],
        env={**os.environ, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
