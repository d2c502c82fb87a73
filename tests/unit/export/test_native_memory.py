"""The native writers stay inside their memory, whatever they are given: random traces, whole and damaged, under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from devprof.export.build_spec import EXPORT
from tests.unit.sanitized import built, said

CHUNKS = 3_000


@pytest.fixture(scope="module", params=["random_chunks", "random_perfetto"])
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "csrc" / f"{request.param}.cpp"
    return built(EXPORT, source, tmp_path_factory.mktemp("driver"), without=("json.cpp", "pftrace.cpp"))


@pytest.mark.parametrize("seed", [1, 2])
def test_random_traces_are_written_or_refused_and_no_sanitizer_complains(driver: Path, seed: int) -> None:
    assert said(driver, seed, CHUNKS).startswith(f"{CHUNKS} written, ")
