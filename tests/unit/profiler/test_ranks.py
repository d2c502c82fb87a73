"""Which process of a job this is, without importing anything."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from devprof.profiler.ranks import Rank, rank_here


def group(**answers: Any) -> SimpleNamespace:
    known = {"is_available": True, "is_initialized": True, "get_rank": 2, "get_world_size": 4, "get_backend": "gloo"}
    return SimpleNamespace(**{name: (lambda value=value: value) for name, value in {**known, **answers}.items()})


@pytest.mark.parametrize(
    ("distributed", "environment", "expected"),
    [
        (None, {}, None),
        (None, {"RANK": "1"}, Rank(1)),
        (None, {"RANK": "1", "WORLD_SIZE": "8"}, Rank(1, 8)),
        (None, {"RANK": "one"}, None),
        (group(), {"RANK": "1"}, Rank(2, 4, "gloo")),
        (group(is_initialized=False), {"RANK": "1"}, Rank(1)),
        (group(is_available=False), {}, None),
        (SimpleNamespace(), {"RANK": "5"}, Rank(5)),
    ],
)
def test_a_process_group_says_the_rank_and_else_the_environment(
    monkeypatch: pytest.MonkeyPatch, distributed: Any, environment: dict[str, str], expected: Rank | None
) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert rank_here() == expected


def test_a_trace_carries_what_is_known_of_the_job() -> None:
    assert Rank(0, 4, "gloo").as_dict() == {"rank": 0, "world_size": 4, "backend": "gloo"}
    assert Rank(0).as_dict() == {"rank": 0}
