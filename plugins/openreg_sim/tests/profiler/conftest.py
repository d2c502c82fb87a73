"""What the plugin's tests share: a logger that keeps everything, and a session driven as devprof drives one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openreg_sim.profiler import OpenRegProfiler, OpenRegProfilerSession
from openreg_sim.runtime import Runtime, RuntimeConfig, use_runtime

from devprof.contract import SessionConfig
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo


class KeepingLogger:
    """An `ActivityLogger` that keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[ActivityBatch] = []
        self.dropped: list[tuple[int | None, str]] = []

    def handle_activity(self, activity: GenericTraceActivity) -> None:
        self.batches.append(ActivityBatch.from_activities([activity]))

    def handle_activities(self, batch: ActivityBatch) -> None:
        self.batches.append(batch)

    def handle_device_info(self, info: DeviceInfo) -> None:
        raise AssertionError("the plugin names its rows by the getters")

    def handle_resource_info(self, info: ResourceInfo) -> None:
        raise AssertionError("the plugin names its rows by the getters")

    def handle_dropped(self, count: int | None, reason: str) -> None:
        self.dropped.append((count, reason))

    @property
    def activities(self) -> list[GenericTraceActivity]:
        return [activity for batch in self.batches for activity in batch.activities()]

    def of(self, type: ActivityType) -> list[GenericTraceActivity]:
        return [activity for activity in self.activities if activity.activity_type is type]


def configure(*types: ActivityType, **config: Any) -> OpenRegProfilerSession:
    profiler = OpenRegProfiler()
    asked = set(types) if types else set(profiler.available_activities())
    # the tests push ids themselves, as the host torch does; devprof's own would be asked
    return profiler.configure(asked, SessionConfig(host="torch", **config))


def process(session: OpenRegProfilerSession) -> KeepingLogger:
    logger = KeepingLogger()
    session.process_trace(logger, lambda _: True, 0, 2**62)
    return logger


def capture(work: Callable[[], object], *types: ActivityType, **config: Any) -> KeepingLogger:
    """Drive a session through a whole capture of `work`."""
    session = configure(*types, **config)
    session.start()
    work()
    session.stop()
    logger = process(session)
    session.get_trace_buffer()
    return logger


@pytest.fixture
def virtual() -> Iterator[Runtime]:
    with use_runtime(Runtime(RuntimeConfig.virtual_clock())) as runtime:
        yield runtime


@pytest.fixture(name="configure")
def configure_fixture() -> Callable[..., OpenRegProfilerSession]:
    return configure


@pytest.fixture(name="process")
def process_fixture() -> Callable[..., KeepingLogger]:
    return process


@pytest.fixture(name="capture")
def capture_fixture() -> Callable[..., KeepingLogger]:
    return capture
