"""Nothing stays behind: no recorder, no callback, no wrap, no range."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

import pytest

from devprof.host import callbacks, gate, recorder

_SUBMIT = ThreadPoolExecutor.submit


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
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
