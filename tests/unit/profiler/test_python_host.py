"""The host without torch: what its window holds."""

from __future__ import annotations

import pytest

from devprof.host import HostRecorder, HostRecording, record_function
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.profiler import profile
from devprof.profiler.joining import joined
from devprof.registry import register, unregister
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder
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


def test_every_cycle_numbers_its_launches_from_the_start_and_cycles_together_keep_them_apart() -> None:
    """The numbers are those of a session: a profile that cycles for days does not come to their end."""

    def script(start_ns: int, end_ns: int) -> list[GenericTraceActivity]:
        kinds = (ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.CONCURRENT_KERNEL)
        return [
            GenericTraceActivity(kind, kind.name, start_ns + 10 * number, start_ns + 10 * number + 5, id=number)
            for number in (1, 2)
            for kind in kinds
        ]

    traces = []
    register(plugin_of(ScriptedProfiler("cycling", script)), "cycling")
    try:
        prof = profile(activities=["cycling"], host="python", acc_events=True)
        for _ in range(3):
            with prof:
                pass
            traces.append(prof.trace)
    finally:
        unregister("cycling")
    first, second = 2**30, 2**30 + 1
    assert [trace.id.tolist() for trace in traces] == [[first, first, second, second]] * 3
    whole = joined(traces)
    for column in (whole.id, whole.flow_id):
        assert column.tolist() == [first + number for number in (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)]
    assert whole.parent.tolist() == [-1, 0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10]
    assert {(row.key, row.count) for row in prof.key_averages()} == {
        ("PRIVATEUSE1_RUNTIME", 6),
        ("CONCURRENT_KERNEL", 6),
    }


def test_an_item_that_names_no_launch_names_none_in_joined_cycles_either() -> None:
    def cycle() -> Trace:
        builder = TraceBuilder()
        row = builder.row(Row(builder.place(Place(0, PlaceKind.DEVICE, "toy 0", backend="toy")), 0))
        for number in (2**30, 0):
            items = {"correlation": number}
            record = GenericTraceActivity(ActivityType.CUDA_EVENT, "e", 10, 20, id=number, metadata=items)
            builder.add(ActivityBatch.from_activities([record]), row)
        return builder.build()

    whole = joined([cycle(), cycle()])
    assert whole.id.tolist() == [2**30, 0, 2**30 + 1, 0]
    assert [whole.item("correlation", event) for event in range(4)] == whole.id.tolist()


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
