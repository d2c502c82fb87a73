"""Lets the tests of this folder import the toy and its zoo, and lets no thread of it live on into other tests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import zoo


@pytest.fixture(autouse=True)
def _no_thread_lives_on() -> Iterator[None]:
    """What a leaky animal leaves waits in the traces of every later test that records stacks."""
    yield
    zoo.ENDED.set()
    for thread in threading.enumerate():
        if thread.name == zoo.COLLECTOR:
            thread.join(10)
    zoo.ENDED.clear()
