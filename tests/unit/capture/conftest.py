"""Nothing stays behind: hooks that hang are released, and nobody is quarantined in the next test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from devprof.capture import quarantine
from tests.unit.capture.plugins import PatientRunner


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "_ENTRIES", {})
    for name in ("DEVPROF_HOOK_TIMEOUT_S", "DEVPROF_MAX_RECORDS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def runner() -> PatientRunner:
    """A runner that gives up when a hook says that it hangs."""
    return PatientRunner()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set, it lets every hook that hangs come back; set at the latest when the test ends."""
    event = threading.Event()
    yield event
    event.set()
    for thread in threading.enumerate():
        if thread.name.startswith("devprof-"):
            thread.join(timeout=30)


@pytest.fixture
def hang(runner: PatientRunner, release: threading.Event) -> Callable[[], None]:
    """A hook that does not come back until the test ends."""

    def _hang() -> None:
        runner.hung.set()
        release.wait(timeout=60)

    return _hang
