"""Every test that takes `core` runs once per core of this interpreter."""

from __future__ import annotations

import os
import sys

import pytest

from devprof.errors import BuildError
from devprof.host.functions.native_core import native_library

PYTHON_CORE = "monitoring" if sys.version_info >= (3, 12) else "setprofile"


@pytest.fixture(params=["native", "python"])
def core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of the core that `function_tracer` will take."""
    monkeypatch.setenv("DEVPROF_FUNCTION_TRACER", request.param)
    if request.param == "python":
        return PYTHON_CORE
    try:
        native_library()
    except BuildError as error:
        if os.environ.get("DEVPROF_REQUIRE_NATIVE"):
            raise
        pytest.skip(f"no native core here: {error}")
    return "native"


@pytest.fixture
def reaches_running_threads(core: str) -> bool:
    """False for the one core that cannot hook threads that run already."""
    return core != "setprofile"
