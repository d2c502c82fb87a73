"""What a recorder notes of a backend's sessions, and what it leaves out."""

from __future__ import annotations

import getpass
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sessions import CLOCK, ZERO_NS, Clock, Nothing, Profiler, Session, drive, recording_of

from devprof.contract import ClockDomain, SessionConfig
from devprof.errors import UsageError
from devprof.model import ActivityType, DeviceInfo, GenericTraceActivity
from devprof.replay import HostRanges, Recorder
from devprof.replay.recording import AXIS_NS
from devprof.replay.values import Unrecorded, decoded, encoded


def test_a_session_is_noted_with_everything_that_it_was_told_and_delivered() -> None:
    recording = recording_of()
    (session,) = recording.sessions
    assert (recording.plugin, recording.capabilities.torch_device) == ("npu", "npu")
    assert recording.available == session.kinds == {ActivityType.CONCURRENT_KERNEL, ActivityType.PRIVATEUSE1_RUNTIME}
    assert session.domain == ClockDomain(CLOCK, 1e9)
    assert [len(batch) for batch in session.batches] == [2, 2]
    assert [batch.clock for batch in session.batches] == ["unix_ns", CLOCK]
    assert session.dropped == [(3, "the ring was full"), (None, "the vendor does not say")]
    assert session.device_infos == [DeviceInfo(0, "npu 0", properties={"cores": 4})]
    assert [call.hook for call in session.hooks] == [
        "configure",
        "clock_domain",
        "start",
        "stop",
        "process_trace",
        "status",
        "errors",
        "get_resource_infos",
        "get_metadata",
    ]
    assert decoded(session.said["errors"]) == ["a page fault"]
    assert len(session.samples) == 2
    assert session.window_end_ns > session.window_start_ns > AXIS_NS


def test_ticks_and_launch_numbers_are_as_the_backend_gave_them_and_host_times_begin_at_a_second() -> None:
    (session,) = recording_of().sessions
    calls, kernels = (batch.activities() for batch in session.batches)
    assert [(one.start_ns, one.end_ns, one.id, one.linked) for one in kernels] == [
        (70_000, 75_000, 1, 41),
        (80_000, 85_000, 2, 42),
    ]
    first_look = ZERO_NS + 1000  # the recorder looks at the clock before the first method
    assert [one.start_ns for one in calls] == [at - first_look + AXIS_NS for at in (ZERO_NS + 60_000, ZERO_NS + 70_000)]
    assert session.hooks[0].start_ns == AXIS_NS


def test_the_backend_notices_nothing() -> None:
    clock = Clock()
    profiler = Profiler(clock)
    original = Profiler.configure
    with Recorder(profiler):
        assert "configure" in vars(profiler)
    assert vars(profiler) == {"clock": clock, "session": Session}
    assert Profiler.configure is original


def test_a_method_that_raises_is_noted_and_raises() -> None:
    class Fails(Session):
        def stop(self) -> None:
            raise RuntimeError("no device")

    clock = Clock()
    profiler = Profiler(clock, Fails)
    with Recorder(profiler) as recorder, pytest.raises(RuntimeError, match="no device"):
        drive(profiler, SessionConfig(host="python", now_ns=clock))
    (session,) = recorder.recording().sessions
    assert [(call.hook, call.failed) for call in session.hooks if call.failed] == [("stop", "RuntimeError: no device")]


def test_a_plugin_that_takes_part_in_nothing_gives_no_recording() -> None:
    with Recorder(Profiler(Clock())) as recorder:
        pass
    with pytest.raises(UsageError, match="'npu' took part in no session"):
        recorder.recording()


def test_records_that_no_column_can_hold_are_counted() -> None:
    class Wrong(Session):
        def kernels(self) -> list[GenericTraceActivity]:
            return [replace(one, id="seven") for one in super().kernels()]  # type: ignore[arg-type]

    clock = Clock()
    profiler = Profiler(clock, Wrong)
    with Recorder(profiler) as recorder:
        drive(profiler, SessionConfig(host="python", now_ns=clock))
    assert recorder.n_malformed == 2
    assert [len(batch) for batch in recorder.recording().sessions[0].batches] == [2]


def test_one_metadata_key_with_values_of_two_types_is_noted_in_two_batches() -> None:
    class Mixed(Session):
        def kernels(self) -> list[GenericTraceActivity]:
            first, second = super().kernels()
            return [replace(first, metadata={"x": 1}), replace(second, metadata={"x": "one"})]

    (session,) = recording_of(Mixed).sessions
    found = [one.metadata for batch in session.batches[1:] for one in batch.activities()]
    assert found == [{"x": 1}, {"x": "one"}]


def test_pushes_to_the_session_and_reports_of_memory_are_noted_with_their_threads() -> None:
    class Pushed(Session):
        def push_correlation_id(self, id: int) -> None: ...
        def pop_correlation_id(self) -> None: ...
        def push_user_correlation_id(self, id: int) -> None: ...
        def pop_user_correlation_id(self) -> None: ...

    def body(session: Any) -> None:
        session.push_correlation_id(41)
        session.push_user_correlation_id(42)
        session.pop_user_correlation_id()
        other = threading.Thread(target=session._session.memory.report_memory_usage, args=(4096, 64, 64, 128, 1))
        other.start()
        other.join()
        session._session.memory.report_out_of_memory(1 << 40, 64, 128, 0)
        session.pop_correlation_id()

    (session,) = recording_of(Pushed, body).sessions
    assert [(one.kind, one.id, one.thread_id) for one in session.pushes] == [
        (0, 41, 1),
        (1, 42, 1),
        (1, 0, 1),
        (0, 0, 1),
    ]
    usage, failed = session.reports
    assert (usage.address, usage.delta_bytes, usage.device, usage.thread_id, usage.failed) == (1, 64, 1, 2, False)
    assert (failed.delta_bytes, failed.failed) == (1 << 40, True)


# -- what belongs to one machine or user -----------------------------------------------------------------------------------


class Talkative(Session):
    def errors(self) -> Sequence[str]:
        user, host = getpass.getuser(), socket.gethostname()
        return [
            f"cannot open /data/{user}/model.bin on {host}",
            r"C:\models\x.onnx",
            "aten::mm and a/b and 1/2",
            f"by {user}.",
        ]

    def kernels(self) -> list[GenericTraceActivity]:
        return [replace(one, metadata={"source": "/srv/secret/kernels/mm.py"}) for one in super().kernels()]


def ranges(*names: str, is_user: bool = True) -> HostRanges:
    n = len(names)
    at = np.arange(n, dtype=np.int64) + ZERO_NS
    return HostRanges(names, np.arange(41, 41 + n), np.full(n, 77), at, at + 5, np.full(n, is_user))


def recorded(*, keep_texts: bool) -> Any:
    clock = Clock()
    profiler = Profiler(clock, Talkative)
    with Recorder(profiler) as recorder:
        drive(profiler, SessionConfig(host="python", now_ns=clock))
    recorder.note_host(ranges("customer 4711", "customer 4711", "payroll"))
    return recorder.recording(keep_texts=keep_texts).sessions[0]


def test_paths_names_and_the_users_ranges_are_left_out() -> None:
    session = recorded(keep_texts=False)
    first, second, third, fourth = decoded(session.said["errors"])
    assert first.startswith("cannot open <path> on ")
    assert second == "<path>"
    assert third == "aten::mm and a/b and 1/2"
    if len(socket.gethostname()) > 2:
        assert first == "cannot open <path> on <host>"
    if len(getpass.getuser()) > 2:
        assert fourth == "by <user>."
    assert {one.metadata["source"] for one in session.batches[1].activities()} == {"<path>"}
    assert session.host.names == ("range 1", "range 1", "range 2")


def test_texts_stay_where_that_is_asked_for() -> None:
    session = recorded(keep_texts=True)
    assert decoded(session.said["errors"])[1] == r"C:\models\x.onnx"
    assert session.host.names == ("customer 4711", "customer 4711", "payroll")


def test_threads_are_numbered_in_the_order_in_which_they_appear_and_strange_ones_lie_above() -> None:
    session = recorded(keep_texts=False)
    assert set(session.host.thread_id.tolist()) == {1}
    assert set(session.batches[0].thread_id.tolist()) == {1}  # 77, as the ranges have it
    (alone,) = recording_of().sessions
    assert min(alone.batches[0].thread_id.tolist()) >= 2**22


def test_times_that_are_none_and_times_that_cannot_be_moved_stay() -> None:
    class Odd(Session):
        def calls(self) -> list[GenericTraceActivity]:
            first, second = super().calls()
            return [replace(first, start_ns=0, end_ns=0), replace(second, start_ns=2**63 - 1, end_ns=2**63 - 1)]

    (session,) = recording_of(Odd).sessions
    assert [(one.start_ns, one.end_ns) for one in session.batches[0].activities()] == [(0, 0), (2**63 - 1,) * 2]


@pytest.mark.parametrize(
    "value",
    [None, True, 7, -1.5, "text", [1, "two", None], {"a": {"b": [1.0]}}, [DeviceInfo(1, "x")], {"$float": "nan"}],
)
def test_what_a_method_returns_comes_back(value: object) -> None:
    assert decoded(encoded(value)) == value


def test_what_json_lacks_comes_back_or_is_said_to_be_missing() -> None:
    assert str(decoded(encoded(float("inf")))) == "inf"
    found = decoded(encoded([object()]))
    assert isinstance(found[0], Unrecorded)
    assert repr(found[0]) == "<a object that was not recorded>"
    assert isinstance(decoded(encoded(10**30)), Unrecorded)


def test_a_recorder_takes_a_profiler_that_takes_no_attributes() -> None:
    class Slotted(Profiler):
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            if name == "configure":
                raise AttributeError(name)
            super().__setattr__(name, value)

    clock = Clock()
    profiler = Slotted(clock)
    with Recorder(profiler) as recorder:
        drive(profiler, SessionConfig(host="python", now_ns=clock, memory=Nothing()))
    assert len(recorder.recording().sessions) == 1
    assert "configure" not in vars(Slotted)
