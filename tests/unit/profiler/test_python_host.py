"""`PythonHost`: what happens when, in a session of its own."""

from __future__ import annotations

import time
from typing import Any

import pytest

import devprof
from devprof.errors import DevprofWarning
from devprof.host import functions


def test_what_may_be_built_at_first_use_is_built_before_the_window_and_before_plugins_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, asked_ns = functions.function_tracer, []

    def slow(**options: Any) -> Any:
        asked_ns.append(time.time_ns())
        return real(**options)

    monkeypatch.setattr(functions, "function_tracer", slow)
    with devprof.profile(activities=["cpu"], host="python", with_stack=True) as prof:
        pass
    assert asked_ns[0] < prof.trace.window_start_ns
    actions = [devprof.ProfilerAction.WARMUP, devprof.ProfilerAction.NONE]
    asked_ns.clear()
    prof = devprof.profile(activities=["cpu"], host="python", with_stack=True, schedule=actions.__getitem__)
    prof.start()
    assert asked_ns, "the warm-up is the time for it"
    with pytest.warns(DevprofWarning, match="goes from WARMUP to NONE"):
        prof.step()
    prof.stop()
