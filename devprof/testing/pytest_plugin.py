"""What devprof adds to a run of pytest: at its end the reports of the conformance classes that ran.

pytest loads this module in every run, by the entry point ``devprof`` of group ``pytest11``. So it imports nothing of devprof
and nothing heavy, and says nothing where no conformance test ran.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["pytest_terminal_summary"]

_KIT = "devprof.testing.conformance.case"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write a line per plugin that was tested, and which features of CUDA's traces its traces have."""
    kit = sys.modules.get(_KIT)
    reports = kit.REPORTS if kit is not None else ()
    if not reports:
        return
    terminalreporter.section("devprof conformance")
    for report in reports:
        for line in report.feature_lines():
            terminalreporter.line(line)
        terminalreporter.line(report.summary)
