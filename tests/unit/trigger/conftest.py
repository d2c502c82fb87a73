"""A folder of sockets of its own, and listeners that are closed again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devprof.trigger.listener import Listener, Settings

Made = Callable[..., Listener]


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dv") as folder:  # pytest's own are too long for a socket
        monkeypatch.setenv("DEVPROF_RUNTIME_DIR", f"{folder}/run")
        monkeypatch.delenv("DEVPROF_ON_DEMAND", raising=False)
        monkeypatch.delenv("DEVPROF_DISABLE", raising=False)
        yield Path(folder) / "run"


@pytest.fixture
def listen(tmp_path: Path) -> Iterator[Made]:
    made: list[Listener] = []

    def make(max_seconds: float = 20.0, activities: tuple[str, ...] | None = ("cpu",)) -> Listener:
        one = Listener(Settings(tmp_path / "traces", max_seconds, activities, "python"))
        one.open()
        made.append(one)
        return one

    yield make
    for one in made:
        one.end_capture()
