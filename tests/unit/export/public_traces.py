"""Public GPU traces, which do not belong to this repository: from `DEVPROF_TRACES`, or a folder beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[4] / "shared" / "traces"
FOLDER = Path(os.environ.get("DEVPROF_TRACES") or _BESIDE)  # an empty text is not the working directory
FILES = sorted(FOLDER.glob("*.json.gz"))

each_public_trace = pytest.mark.parametrize(
    "public_trace",
    FILES
    or [pytest.param(None, marks=pytest.mark.skip(reason=f"no traces in {FOLDER}; DEVPROF_TRACES names a folder"))],
    ids=lambda path: path.name.removesuffix(".json.gz") if path else "none",
)
