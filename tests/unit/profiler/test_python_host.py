"""The host without torch: what its window holds."""

from __future__ import annotations

import pytest

from devprof.host import HostRecorder, HostRecording, record_function
from devprof.profiler import profile


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
