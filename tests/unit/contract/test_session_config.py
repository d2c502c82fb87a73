"""A session that asks for nothing special says so."""

from __future__ import annotations

import dataclasses
import time

import pytest

from devprof.contract import SessionConfig


def test_only_the_host_must_be_named() -> None:
    assert dataclasses.asdict(SessionConfig("python")) == {
        "host": "python",
        "trace_id": "",
        "record_shapes": False,
        "profile_memory": False,
        "with_stack": False,
        "with_flops": False,
        "with_modules": False,
        "custom": "",
        "memory": None,
        "correlation_api": 0,
        "now_ns": time.time_ns,
        "named": False,
    }


def test_a_plugin_cannot_change_what_the_session_was_asked_for() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SessionConfig("python").with_stack = True  # type: ignore[misc]
