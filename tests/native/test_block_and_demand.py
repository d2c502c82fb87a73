"""The bridge's blocks of records, and requests from outside: neither steps outside of its memory, nor races.

DEVPROF_FUZZ_S says for how many seconds each of these runs; by default a few.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from devprof.native.facts import include_dir, torch_facts
from tests.native.test_stacks_and_ring import BRIDGE, SECONDS, built, ran

SOURCES = [BRIDGE / "block.cpp", BRIDGE / "demand.cpp", Path(__file__).with_name("block_and_demand.cpp")]


def driver(folder: Path, sanitizer: str) -> Path:
    """Return the driver under a sanitizer; the test is skipped where there are no headers of Kineto's."""
    torch = torch_facts()
    if torch is None or not torch.has_kineto:
        pytest.skip("needs a torch with Kineto's headers")
    return built(folder, sanitizer, SOURCES, [BRIDGE, include_dir()], torch.include_dirs)


def test_random_blocks_are_read_within_their_memory_and_what_cannot_be_copied_is_refused(tmp_path: Path) -> None:
    program = driver(tmp_path, "address,undefined")
    assert [ran(program, "blocks", SECONDS, seed) > 100 for seed in ("1", "2")] == [True, True]


def test_requests_are_posted_taken_and_ended_on_many_threads_without_a_race(tmp_path: Path) -> None:
    assert ran(driver(tmp_path, "thread"), "demand", SECONDS) > 100
