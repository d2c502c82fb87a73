"""The native decoder stays inside its memory, whatever it is given: random JSON, whole and damaged, under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from devprof.store.readers import JSON
from tests.unit.sanitized import built, said

PIECES = 10_000


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "csrc/random_pieces.cpp"
    return built(JSON, source, tmp_path_factory.mktemp("driver"), without=("json.cpp",))


@pytest.mark.parametrize("seed", [1, 2])
def test_random_pieces_are_taken_or_refused_their_columns_hold_together_and_no_sanitizer_complains(
    driver: Path, seed: int
) -> None:
    decoded, taken = (int(part.split()[0]) for part in said(driver, seed, PIECES).split(", "))
    assert decoded == PIECES
    assert taken > PIECES / 4  # else what is tried is hardly ever JSON
