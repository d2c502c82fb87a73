"""Lanes with a plugin of the test's own, and what every test of one does with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devprof.capture import Lane, LaneResult
from devprof.contract import (
    ClockDomain,
)
from devprof.errors import PluginWarning
from devprof.model import ActivityType
from devprof.registry import RegisteredProfiler
from tests.unit.capture.plugins import (
    CONFIG,
    PatientRunner,
    plugin,
)

__all__ = ["AFTER_RECORDS", "CLOCK", "LIFE", "Hang", "hook_name", "lane_of", "one_warning", "raising", "run_through"]

CLOCK = ClockDomain("ticks", 1e9)
AFTER_RECORDS = ["status", "errors", "get_device_infos", "get_resource_infos", "get_device_properties", "get_metadata"]
# what is called under `CorrelationAccess.READ`
LIFE = ["clock_domain", "start", "stop", "process_trace", *AFTER_RECORDS, "get_trace_buffer"]

Hang = Callable[[], None]
"""Fixture `hang`: does not come back before the test is over."""


def raising(error: BaseException) -> Callable[[], Any]:
    def fault() -> Any:
        raise error

    return fault


@contextlib.contextmanager
def one_warning(hook: str) -> Iterator[None]:
    """Exactly one `PluginWarning`, which names the plugin and the hook."""
    with pytest.warns(PluginWarning) as caught:
        yield
    assert len(caught) == 1, [str(one.message) for one in caught]
    assert f"plugin 'demo', {hook}: " in str(caught[0].message)


def run_through(lane: Lane) -> LaneResult:
    lane.configure(frozenset(ActivityType), CONFIG)
    lane.start()
    return lane.finish(bool, 5, 50)


def lane_of(runner: PatientRunner, **options: Any) -> tuple[Lane, RegisteredProfiler]:
    registered = plugin(**options)
    return Lane(registered, runner, CONFIG.now_ns), registered


def hook_name(name: str) -> str:
    return name if name == "configure" else f"session.{name}"
