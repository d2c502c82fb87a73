"""What devprof adds to a run of pytest: the fixture `profiled`, and at the end the reports of the conformance classes that ran.

pytest loads this module in every run, by the entry point ``devprof`` of group ``pytest11``. So it imports nothing of devprof
and nothing heavy, and says nothing where no conformance test ran.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from devprof.testing.traced import Traced

__all__ = ["profiled", "pytest_addoption", "pytest_terminal_summary"]

_KIT = "devprof.testing.conformance.case"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes baselines."""
    parser.getgroup("devprof").addoption(
        "--devprof-renew-baselines",
        action="store_true",
        help="write the device times that `profiled` compares with, instead of comparing",
    )


@pytest.fixture
def profiled(request: pytest.FixtureRequest) -> Callable[..., Traced]:
    """Profile a block of a test, and assert on its trace: see `devprof.testing.Traced`."""
    from devprof.testing.baselines import FILE, Baselines
    from devprof.testing.traced import Traced

    renew = bool(request.config.getoption("--devprof-renew-baselines", default=False))
    baselines = Baselines(request.path.with_name(FILE), renew=renew)

    def make(*activities: str, **options: Any) -> Traced:
        return Traced(baselines, request.node.name, *activities, **options)

    return make


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
