"""The host without torch: what its window holds."""

from __future__ import annotations

import pytest

from devprof.host import HostRecorder, HostRecording, record_function
from devprof.profiler import profile
from devprof.registry import register, unregister
from devprof.testing import ScriptedProfiler, plugin_of


def test_a_range_that_another_thread_ends_while_the_stop_begins_is_inside_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow_stop(recorder: HostRecorder) -> HostRecording:
        with record_function("as of another thread"):
            pass
        return stop(recorder)

    stop = HostRecorder.stop
    monkeypatch.setattr(HostRecorder, "stop", slow_stop)
    with profile(activities=["cpu"], host="python") as prof:
        pass
    trace = prof.trace
    assert [trace.strings[name] for name in trace.name] == ["as of another thread"]
    assert trace.window_start_ns <= trace.start_ns[0] <= trace.end_ns[0] <= trace.window_end_ns
    assert prof.stats.window_ns == trace.window_end_ns - trace.window_start_ns


@pytest.mark.parametrize(
    ("activities", "named"), [(["cpu", "named one"], True), ([{"named one": ["OVERHEAD"]}], True), (None, False)]
)
def test_a_plugin_is_told_whether_its_device_was_named(activities: list[object] | None, named: bool) -> None:
    profiler = ScriptedProfiler("named one")
    register(plugin_of(profiler), "named one")
    try:
        with profile(activities=activities, host="python"):
            pass
    finally:
        unregister("named one")
    assert [session.config.named for session in profiler.sessions] == [named]
