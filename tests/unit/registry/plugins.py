"""Plugins and parts of plugins for the tests of this room."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from devprof.contract import Capabilities, IActivityProfilerSession, SessionConfig, hookimpl
from devprof.model import ActivityType

KERNELS = frozenset({ActivityType.CONCURRENT_KERNEL})
LOADS: list[str] = []
"""Names of installed plugins that were imported, for a test that counts."""


class Session:
    """The least that a session is."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def process_trace(self, logger: object, get_linked_activity: object, start_ns: int, end_ns: int) -> None: ...


class Profiler:
    """A profiler that fits the contract."""

    def __init__(self, name: str = "demo", torch_device: str | None = None, **capabilities: Any) -> None:
        self._name = name
        self._capabilities = Capabilities(torch_device=torch_device, **capabilities)

    def name(self) -> str:
        return self._name

    def capabilities(self) -> Capabilities:
        return self._capabilities

    def available_activities(self) -> Set[ActivityType]:
        return set(KERNELS)

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> IActivityProfilerSession | None:
        return None


class Stubs:
    """Stubs that fit the contract."""

    def __init__(self, torch_device: str = "npu") -> None:
        self.torch_device = torch_device

    def record(self) -> object:
        return object()

    def elapsed(self, start: object, end: object) -> float:
        return 1.0

    def mark(self, name: str) -> None: ...

    def range_push(self, name: str) -> None: ...

    def range_pop(self) -> None: ...

    def enabled(self) -> bool:
        return True

    def on_each_device(self, visit: object) -> None: ...

    def synchronize(self) -> None: ...


class Plugin:
    """A plugin object with every hook, and a note of how often each was called."""

    def __init__(self, profilers: Any = (), stubs: Any = None, builds: Any = (), lines: Any = ()) -> None:
        self._answers = {"profilers": profilers, "stubs": stubs, "builds": builds, "lines": lines}
        self.calls: list[str] = []

    def _answer(self, what: str) -> Any:
        self.calls.append(what)
        answer = self._answers[what]
        return answer() if callable(answer) and not isinstance(answer, type) else answer

    @hookimpl
    def devprof_activity_profilers(self) -> Any:
        return self._answer("profilers")

    @hookimpl
    def devprof_profiler_stubs(self) -> Any:
        return self._answer("stubs")

    @hookimpl
    def devprof_native_builds(self) -> Any:
        return self._answer("builds")

    @hookimpl
    def devprof_doctor_lines(self) -> Any:
        return self._answer("lines")


class OneHook:
    """A plugin that only brings profilers."""

    def __init__(self, *profilers: object) -> None:
        self._profilers = profilers

    @hookimpl
    def devprof_activity_profilers(self) -> Any:
        return list(self._profilers)
