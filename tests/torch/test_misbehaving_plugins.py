"""Whatever a plugin does in its hooks, the user's block, the host's trace, the other plugins and the next session are whole.

One warning names the plugin and the hook. A hook that does not come back is given up on within its budget, and its plugin is
left out from then on.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from toyland import Join, kernel, profile

import devprof
from devprof.contract import ClockDomain, CorrelationAccess, TraceStatus
from devprof.errors import DevprofWarning, PluginWarning
from devprof.testing import ScriptedProfiler

HOOKS = [
    "configure",
    "start",
    "stop",
    "process_trace",
    "errors",
    "get_device_infos",
    "get_resource_infos",
    "get_device_properties",
    "get_metadata",
    "get_trace_buffer",
]
OPS = ["aten::ones", "aten::empty", "aten::fill_", "aten::neg"]
"""What torch records of `torch.ones(2).neg()` without any plugin."""

TIMEOUT_S = 0.2


def misbehave_by_raising() -> Any:
    raise ValueError("broken plugin")


def misbehave_by_leaving() -> Any:
    raise SystemExit(3)


def misbehave_by_interrupting() -> Any:
    raise KeyboardInterrupt


def misbehave_by_nonsense() -> Any:
    return object()


class Hang:
    """A fault that comes back only when the test is over."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def __call__(self) -> Any:
        self.released.wait(60)


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hang]:
    monkeypatch.setenv("DEVPROF_HOOK_TIMEOUT_S", str(TIMEOUT_S))
    hang = Hang()
    yield hang
    hang.released.set()


FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "raises": (misbehave_by_raising, "ValueError: broken plugin"),
    "leaves": (misbehave_by_leaving, "SystemExit: 3"),
    "interrupts": (misbehave_by_interrupting, "KeyboardInterrupt"),
    "returns nonsense": (misbehave_by_nonsense, "object"),
}


def host_ops(trace: dict[str, Any]) -> list[str]:
    return toyland.names(trace, "cpu_op")


def session(folder: Path) -> tuple[Any, dict[str, Any], list[str]]:
    """Run one profile; returns it, its trace, and devprof's warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile() as prof:
            done = torch.ones(2).neg()
    assert done.tolist() == [-1.0, -1.0]
    prof.key_averages().table()
    told = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    assert all(one.category is PluginWarning for one in caught if issubclass(one.category, DevprofWarning))
    return prof, toyland.exported(prof, folder), told


@pytest.fixture
def neighbour(join: Join) -> ScriptedProfiler:
    """A well-behaved plugin in the same sessions."""
    return join(
        script=lambda start_ns, end_ns: [kernel("neighbour's", at=start_ns)],
        methods={"status": lambda: TraceStatus.READY},
    )


@pytest.fixture(autouse=True)
def _nothing_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The records here carry no op ids on purpose; the warning of that is another test's."""
    from devprof.capture import PluginLedger

    monkeypatch.setattr(PluginLedger, "none_linked", property(lambda self: False))


def test_the_ops_without_any_plugin_are_those_that_the_tests_here_expect(tmp_path: Path) -> None:
    with profile([toyland.CPU]) as prof:
        torch.ones(2).neg()
    assert host_ops(toyland.exported(prof, tmp_path)) == OPS


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_misbehaves_costs_its_plugin_the_session_and_nobody_else_anything(
    join: Join, neighbour: ScriptedProfiler, tmp_path: Path, hook: str, fault: str
) -> None:
    function, reason = FAULTS[fault]
    plugin = join(script=lambda start_ns, end_ns: [kernel("its own", at=start_ns)], faults={hook: function})
    prof, trace, told = session(tmp_path)
    assert host_ops(trace) == OPS
    assert "neighbour's" in toyland.names(trace, "kernel")
    (warning,) = told
    assert repr(plugin.label) in warning
    assert hook in warning
    assert reason in warning
    ledger = devprof.report_of(prof).ledgers[plugin.label]
    assert len(ledger.failures) == 1
    assert trace["devprof"]["plugins"][plugin.label]["failures"] == [toyland.cleaned(ledger.failures[0])]

    plugin.faults = {}
    prof, trace, told = session(tmp_path)
    assert told == []
    assert host_ops(trace) == OPS
    assert sorted(toyland.names(trace, "kernel")) == ["its own", "neighbour's"]
    assert devprof.report_of(prof).clean


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_hangs_is_given_up_on_and_its_plugin_left_out_from_then_on(
    join: Join, neighbour: ScriptedProfiler, tmp_path: Path, hang: Hang, hook: str
) -> None:
    plugin = join(script=lambda start_ns, end_ns: [kernel("its own", at=start_ns)], faults={hook: hang})
    _, trace, told = session(tmp_path)
    assert host_ops(trace) == OPS
    assert "neighbour's" in toyland.names(trace, "kernel")
    (warning,) = told
    assert repr(plugin.label) in warning
    assert f"{hook}: did not come back within {TIMEOUT_S:g} s" in warning

    plugin.faults = {}
    made = len(plugin.sessions)
    prof, trace, told = session(tmp_path)
    assert told == []
    assert host_ops(trace) == OPS
    assert toyland.names(trace, "kernel") == ["neighbour's"]
    assert len(plugin.sessions) == made
    (failure,) = devprof.report_of(prof).ledgers[plugin.label].failures
    assert "did not come back" in failure


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", HOOKS)
def test_where_warnings_are_errors_a_misbehaving_plugin_still_breaks_nothing(
    join: Join, tmp_path: Path, caplog: pytest.LogCaptureFixture, hook: str, fault: str
) -> None:
    """pytest runs these tests with warnings as errors; the warning becomes a line in the log."""
    plugin = join(faults={hook: FAULTS[fault][0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profile() as prof:
            torch.ones(2).neg()
    assert host_ops(toyland.exported(prof, tmp_path)) == OPS
    (line,) = [record.message for record in caplog.records if record.name.startswith("devprof")]
    assert repr(plugin.label) in line
    assert hook in line


METHODS: dict[str, dict[str, Any]] = {
    "clock_domain": {},
    "status": {},
    "sample_clock": {"clock_domain": lambda: ClockDomain("ticks")},
    "native_correlation": {},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", METHODS)
def test_a_method_that_a_session_need_not_have_is_as_harmless(
    join: Join, neighbour: ScriptedProfiler, tmp_path: Path, hook: str, fault: str
) -> None:
    function, reason = FAULTS[fault]
    plugin = join(methods={**METHODS[hook], hook: function}, correlation=CorrelationAccess.NATIVE)
    _, trace, told = session(tmp_path)
    assert host_ops(trace) == OPS
    assert toyland.names(trace, "kernel") == ["neighbour's"]
    (warning,) = told
    assert repr(plugin.label) in warning
    assert f"session.{hook}" in warning
    assert reason in warning


@pytest.mark.parametrize(
    "hook", ["push_correlation_id", "pop_correlation_id", "push_user_correlation_id", "pop_user_correlation_id"]
)
@pytest.mark.parametrize("fault", ["raises", "leaves", "interrupts"])
def test_a_push_that_misbehaves_on_the_ops_thread_is_met_once(
    join: Join, neighbour: ScriptedProfiler, tmp_path: Path, hook: str, fault: str
) -> None:
    function, reason = FAULTS[fault]
    called: list[int] = []

    def misbehave(*ids: int) -> Any:
        called.append(len(ids))
        return function()

    plugin = join(methods={hook: misbehave}, correlation=CorrelationAccess.PYTHON)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile() as prof, torch.profiler.record_function("range"):
            torch.ones(2).neg()
    (warning,) = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    assert f"session.{hook}" in warning
    assert reason in warning
    assert len(called) == 1
    trace = toyland.exported(prof, tmp_path)
    assert host_ops(trace) == OPS
    assert toyland.names(trace, "kernel") == ["neighbour's"]
    assert devprof.report_of(prof).ledgers[plugin.label].failures


@pytest.mark.parametrize("fault", FAULTS)
def test_a_toggle_that_misbehaves_costs_its_plugin_the_session_and_nobody_else_anything(
    join: Join, neighbour: ScriptedProfiler, tmp_path: Path, fault: str
) -> None:
    function, reason = FAULTS[fault]
    plugin = join(methods={"toggle_collection_dynamic": lambda enabled: function()})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile() as prof:
            prof.toggle_collection_dynamic(False, [toyland.DEVICE])
            prof.toggle_collection_dynamic(True, [toyland.DEVICE])
            torch.ones(2).neg()
    (warning,) = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    assert f"{plugin.label!r}, session.toggle_collection_dynamic" in warning
    assert reason in warning
    trace = toyland.exported(prof, tmp_path)
    assert host_ops(trace) == OPS
    assert toyland.names(trace, "kernel") == ["neighbour's"]


NOT_A_SESSION: dict[str, Any] = {
    "text": "a session",
    "a class": ScriptedProfiler,
    "nothing like a session": object(),
    "zero": 0,
    "a session without stop": type("Half", (), {"start": lambda self: None, "process_trace": lambda self, *a: None})(),
    "an async session": type(
        "Late",
        (),
        {
            "start": lambda self: None,
            "stop": lambda self: None,
            "process_trace": lambda self, a, b, c: None,
            "errors": 3,
        },
    )(),
    "a session of the wrong shape": type(
        "Wide", (), {"start": lambda self, now: None, "stop": lambda self: None, "process_trace": lambda self, *a: None}
    )(),
}


@pytest.mark.parametrize("case", NOT_A_SESSION)
def test_what_is_no_session_is_refused_in_configure(
    join: Join, neighbour: ScriptedProfiler, tmp_path: Path, case: str
) -> None:
    plugin = join(faults={"configure": lambda: NOT_A_SESSION[case]})
    _, trace, told = session(tmp_path)
    assert toyland.names(trace, "kernel") == ["neighbour's"]
    (warning,) = told
    assert repr(plugin.label) in warning
    assert "configure" in warning


def test_a_plugin_that_hands_the_logger_nonsense_keeps_what_it_delivered_before(join: Join, tmp_path: Path) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        yield kernel("good", at=start_ns)
        yield {"name": "a dict"}

    plugin = join(script=script)
    prof, trace, told = session(tmp_path)
    assert toyland.names(trace, "kernel") == ["good"]
    (warning,) = told
    assert "handle_activity" in warning
    assert "dict" in warning
    assert devprof.report_of(prof).ledgers[plugin.label].emitted == 1


def test_records_delivered_before_process_trace_raised_are_in_the_trace(join: Join, tmp_path: Path) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        yield kernel("first", at=start_ns)
        yield kernel("second", at=start_ns)
        raise RuntimeError("lost the device")

    plugin = join(script=script)
    prof, trace, told = session(tmp_path)
    assert toyland.names(trace, "kernel") == ["first", "second"]
    assert "lost the device" in told[0]
    ledger = devprof.report_of(prof).ledgers[plugin.label]
    assert (ledger.produced, ledger.emitted) == (2, 2)


def test_a_hook_that_hangs_in_process_trace_cannot_write_into_a_later_session(
    join: Join, tmp_path: Path, hang: Hang
) -> None:
    finished = threading.Event()

    def script(start_ns: int, end_ns: int) -> Iterator[Any]:
        yield kernel("in time", at=start_ns)
        try:
            hang()
            yield kernel("too late", at=start_ns)
        finally:
            finished.set()

    join(script=script)
    _, trace, _ = session(tmp_path)
    assert toyland.names(trace, "kernel") == ["in time"]
    with profile() as prof:
        hang.released.set()
        assert finished.wait(30)
    assert toyland.names(toyland.exported(prof, tmp_path), "kernel") == []


def test_several_plugins_that_fail_are_each_named_once(join: Join, neighbour: ScriptedProfiler, tmp_path: Path) -> None:
    broken = [join(faults={hook: misbehave_by_raising}) for hook in HOOKS]
    _, trace, told = session(tmp_path)
    assert toyland.names(trace, "kernel") == ["neighbour's"]
    for plugin in broken:
        assert sum(repr(plugin.label) in one for one in told) == 1
    assert len(told) == len(broken)


def test_a_plugin_whose_session_says_that_it_erred_is_in_the_report_and_not_set_aside(
    join: Join, tmp_path: Path
) -> None:
    plugin = join(
        script=lambda start_ns, end_ns: [kernel(at=start_ns)],
        faults={"errors": lambda: ["the device was reset"]},
    )
    with pytest.warns(devprof.errors.LossWarning, match="the device was reset"), profile() as prof:
        torch.ones(2).neg()
    ledger = devprof.report_of(prof).ledgers[plugin.label]
    assert (ledger.errors, ledger.failures, ledger.emitted) == (["the device was reset"], [], 1)
    assert not devprof.report_of(prof).clean


def test_a_broken_plugin_cannot_keep_devprof_from_finding_the_others(join: Join, neighbour: ScriptedProfiler) -> None:
    class Broken:
        @devprof.hookimpl
        def devprof_activity_profilers(self) -> Any:
            raise RuntimeError("no driver")

    devprof.registry.register(Broken(), "broken plugin")
    try:
        with pytest.warns(PluginWarning, match="no driver"), profile() as prof:
            torch.ones(2).neg()
    finally:
        devprof.registry.unregister("broken plugin")
    assert [event.name for event in prof.events() if event.name == "neighbour's"] == ["neighbour's"]


def test_an_unknown_name_among_the_enabled_plugins_is_one_warning_and_the_others_take_part(
    join: Join, neighbour: ScriptedProfiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEVPROF_PLUGINS", "nobody")
    _, trace, told = session(tmp_path)
    assert toyland.names(trace, "kernel") == ["neighbour's"]
    (warning,) = told
    assert "no profiler named 'nobody'" in warning


def test_a_warning_points_at_the_users_own_line(join: Join) -> None:
    join(script=lambda start_ns, end_ns: [kernel(at=start_ns, device=-1)])
    with pytest.warns(devprof.errors.LossWarning) as caught, profile():
        pass
    assert {one.filename for one in caught} == {__file__}
