"""A build is a value: two that say the same are the same."""

from __future__ import annotations

from pathlib import Path

from devprof.contract import NativeBuild

SOURCES = (Path("/src/sim.cpp"),)


def test_a_build_needs_torch_and_nothing_else_unless_it_says_otherwise() -> None:
    assert NativeBuild("sim", SOURCES) == NativeBuild(
        name="sim",
        sources=SOURCES,
        headers=(),
        include_dirs=(),
        needs_torch=True,
        needs_python=False,
        flags=(),
        description="",
    )


def test_builds_can_be_collected_without_duplicates() -> None:
    assert (
        len({NativeBuild("sim", SOURCES), NativeBuild("sim", SOURCES), NativeBuild("sim", SOURCES, flags=("-g",))}) == 2
    )
