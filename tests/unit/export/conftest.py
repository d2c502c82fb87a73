"""Every test that takes `json_writer` or `perfetto_writer` runs once per writer of the events."""

from __future__ import annotations

import os

import pytest

from devprof.errors import BuildError
from devprof.export.build_spec import EXPORT
from devprof.native import build


@pytest.fixture(scope="session")
def native_writers() -> None:
    """Skip where there is no native writer and none can be built."""
    try:
        build(EXPORT)
    except BuildError as error:
        if os.environ.get("DEVPROF_REQUIRE_NATIVE"):
            raise
        pytest.skip(f"no native writer here: {error}")


@pytest.fixture(params=["native", "python"])
def json_writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of the writer that `chrome_trace` will take."""
    if request.param == "native":
        request.getfixturevalue("native_writers")
    monkeypatch.setenv("DEVPROF_JSON_WRITER", request.param)
    return str(request.param)


@pytest.fixture(params=["native", "python"])
def perfetto_writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of the writer that `perfetto_trace` will take."""
    if request.param == "native":
        request.getfixturevalue("native_writers")
    monkeypatch.setenv("DEVPROF_PERFETTO_WRITER", request.param)
    return str(request.param)
