"""What the tests of a session share: a stand-in for the library, and a session driven as devprof drives one."""

from __future__ import annotations

import ctypes
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cuda_cupti.build_spec import CUPTI
from cuda_cupti.capture import Client
from cuda_cupti.exchange import BUFFER_BYTES, Exchange
from cuda_cupti.native_exchange import NativeExchange
from cuda_cupti.profiler import CudaProfiler, Source
from cuda_cupti.python_exchange import BufferPool, PythonExchange

import devprof
from devprof.contract import SessionConfig, hookimpl
from devprof.errors import BuildError
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.native import build
from devprof.registry import register, unregister

sys.path.insert(0, str(Path(__file__).parent / "support"))

from stand_in import StandIn  # found by the line above


class KeepingLogger:
    """An `ActivityLogger` that keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[ActivityBatch] = []
        self.dropped: list[tuple[int | None, str]] = []

    def handle_activity(self, activity: GenericTraceActivity) -> None:
        raise AssertionError("the plugin hands over batches")

    def handle_activities(self, batch: ActivityBatch) -> None:
        self.batches.append(batch)

    def handle_device_info(self, info: object) -> None:
        raise AssertionError("the plugin names its rows by the getters")

    handle_resource_info = handle_device_info

    def handle_dropped(self, count: int | None, reason: str) -> None:
        self.dropped.append((count, reason))

    def of(self, *types: ActivityType) -> list[GenericTraceActivity]:
        found = [activity for batch in self.batches for activity in batch.activities()]
        return [activity for activity in found if not types or activity.activity_type in types]


def process(session: Any) -> KeepingLogger:
    logger = KeepingLogger()
    session.process_trace(logger, lambda _: True, 0, 2**62)
    return logger


@pytest.fixture
def stand_in() -> StandIn:
    return StandIn()


@pytest.fixture(params=["python", "native"])
def exchange_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Exchange]:
    """Make an exchange with buffers of a size: in Python, and native, of which a process has one per loaded library."""
    if request.param == "python":
        return lambda size_bytes: PythonExchange(BufferPool(size_bytes))
    try:
        library = build(CUPTI)
    except BuildError as error:
        pytest.skip(str(error))
    numbers = iter(range(100))

    def make(size_bytes: int) -> Exchange:
        copy = tmp_path / f"exchange{next(numbers)}.so"
        shutil.copy(library, copy)
        return NativeExchange(ctypes.CDLL(str(copy)), size_bytes)

    return make


@pytest.fixture
def client(stand_in: StandIn, exchange_of: Callable[[int], Exchange]) -> Client:
    return Client(stand_in.access(), exchange_of(BUFFER_BYTES))


@pytest.fixture
def profiler(client: Client) -> CudaProfiler:
    return CudaProfiler(lambda: Source(client, is_alone=lambda host: None))


@pytest.fixture
def configure(profiler: CudaProfiler) -> Callable[..., Any]:
    def make(*types: ActivityType) -> Any:
        return profiler.configure(set(types) or set(profiler.available_activities()), SessionConfig(host="python"))

    return make


@pytest.fixture
def capture(configure: Callable[..., Any]) -> Callable[..., KeepingLogger]:
    def run(work: Callable[[Any], object], *types: ActivityType) -> KeepingLogger:
        session = configure(*types)
        session.start()
        work(session)
        session.stop()
        logger = process(session)
        logger.session = session  # type: ignore[attr-defined]
        return logger

    return run


class NamedProfiler(CudaProfiler):
    """The plugin under another name, so that it stands beside an installed one."""

    def name(self) -> str:
        return "stand-in"


@pytest.fixture
def profile(client: Client) -> Iterator[Callable[..., Any]]:
    class Plugin:
        @hookimpl
        def devprof_activity_profilers(self) -> list[CudaProfiler]:
            return [NamedProfiler(lambda: Source(client, is_alone=lambda host: None))]

    register(Plugin(), "stand-in")
    yield lambda **options: devprof.profile(activities=["cpu", "stand-in"], host="python", **options)
    unregister("stand-in")


@pytest.fixture
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no framework in the process whose profiler could be CUPTI's client."""
    for name in ("torch", "jax", "triton"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture(name="process")
def process_fixture() -> Callable[[Any], KeepingLogger]:
    return process


@pytest.fixture
def flushed() -> Callable[[Any], KeepingLogger]:
    def flush(session: Any) -> KeepingLogger:
        logger = KeepingLogger()
        session.flush_trace(logger)
        return logger

    return flush
