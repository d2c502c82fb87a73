"""Nothing stays behind: no recorder, no callback, no wrap, no range. Every test runs with both ways through a range."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

import pytest

from devprof.errors import BuildError
from devprof.host import callbacks, gate, quick, recorder
from devprof.host.build_spec import RANGES
from devprof.native import build

_SUBMIT = ThreadPoolExecutor.submit


@pytest.fixture(scope="session")
def built() -> str:
    """Why the compiled methods cannot be had here; empty where they are built."""
    try:
        build(RANGES)
    except BuildError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True, params=["python", "native"])
def _way(request: pytest.FixtureRequest, built: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(quick, "_is_chosen", True)
    if request.param == "native":
        if built:
            pytest.skip(built)
        quick.quicken()
    yield
    quick.slow_down()


@pytest.fixture(autouse=True)
def _clean(_way: None) -> Iterator[None]:
    token = gate.CURRENT.set(gate.OUTSIDE)
    yield
    gate.CURRENT.reset(token)
    assert recorder._active is None
    assert not callbacks.CALLBACKS
    assert gate.GATE.queues is None
    assert ThreadPoolExecutor.submit is _SUBMIT


@pytest.fixture
def another_context() -> Context:
    """An empty context, as a thread or task of somebody else has it."""
    return Context()
