"""Every test that takes `json_writer` runs once per writer of Chrome JSON's events."""

from __future__ import annotations

import os

import pytest

from devprof.errors import BuildError
from devprof.export.build_spec import CHROME
from devprof.native import build


@pytest.fixture(scope="session")
def native_json() -> None:
    """Skip where there is no native writer and none can be built."""
    try:
        build(CHROME)
    except BuildError as error:
        if os.environ.get("DEVPROF_REQUIRE_NATIVE"):
            raise
        pytest.skip(f"no native JSON writer here: {error}")


@pytest.fixture(params=["native", "python"])
def json_writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of the writer that `chrome_trace` will take."""
    if request.param == "native":
        request.getfixturevalue("native_json")
    monkeypatch.setenv("DEVPROF_JSON_WRITER", request.param)
    return str(request.param)
