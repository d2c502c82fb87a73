"""The legacy profiler: device time per op from a plugin's stubs, in torch's tables.

``torch.autograd.profiler.profile(use_device=NAME)`` records an event at each op's begin and end, and asks for the time between
them when the results are read. Nothing of it reaches the JSON trace.
"""

from __future__ import annotations

import gc
import json
import math
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from torch.autograd.profiler import profile as autograd_profile
from torch.profiler import record_function
from toyland import Join, Program, Stubs

from devprof.errors import DevprofWarning, PluginWarning
from tests.faults import land, matrix
from tests.faults.matrix import Verdict

JoinStubs = Callable[[Stubs], Stubs]


def legacy(**options: Any) -> Any:
    return autograd_profile(use_device=toyland.backend(), **options)


def work() -> None:
    torch.ones(3).neg()


def device_us(prof: Any) -> dict[str, tuple[float, float]]:
    """Return (total, self) device time of each op of the host."""
    return {row.key: (row.device_time_total, row.self_device_time_total) for row in prof.key_averages()}


def test_record_is_called_twice_per_op_and_range_and_elapsed_once_when_results_are_read(join_stubs: JoinStubs) -> None:
    stubs = join_stubs(Stubs())
    with legacy() as prof, record_function("range"):
        for _ in range(5):
            work()
    assert stubs.count("elapsed") == 0
    recorded = stubs.count("record")
    events = prof.function_events
    assert recorded == 2 * len(events) == 2 * (1 + 5 * 4)
    assert stubs.count("elapsed") == len(events)
    assert stubs.count("record") == recorded
    prof.key_averages().table()
    assert stubs.count("elapsed") == len(events)
    assert {call[0] for call in stubs.calls} == {"record", "elapsed"}
    assert stubs.threads == {threading.get_ident()}


@pytest.mark.parametrize("device", [torch.device("cpu", 0), torch.device("cpu"), "npu", None, 0], ids=repr)
def test_an_event_may_have_a_device_of_any_kind_such_as_that_of_torchs_own_events(
    join_stubs: JoinStubs, device: object
) -> None:
    class OnDevice(Stubs):
        def record(self) -> Any:
            event = super().record()
            event.device = device
            return event

    join_stubs(OnDevice(us_per_event=10))
    with legacy() as prof:
        work()
    assert device_us(prof)["aten::ones"] == (50, 30)


def test_the_tables_show_the_time_between_the_events_in_microseconds_and_nested_ops_right(
    join_stubs: JoinStubs,
) -> None:
    join_stubs(Stubs(us_per_event=10))
    with legacy() as prof, record_function("range"):
        work()
    # events: range( ones( empty( ) fill( ) ) neg( ) )  -> numbers 1 to 10
    assert device_us(prof) == {
        "range": (90, 90 - 50 - 10),
        "aten::ones": (50, 50 - 10 - 10),
        "aten::empty": (10, 10),
        "aten::fill_": (10, 10),
        "aten::neg": (10, 10),
    }
    total = sum(own for _, own in device_us(prof).values())
    assert total == 90
    assert f"Self {toyland.backend().upper()} time total: 90.000us" in prof.key_averages().table()


def test_the_trace_file_of_a_legacy_profile_is_the_hosts_and_parses(join_stubs: JoinStubs, tmp_path: Path) -> None:
    join_stubs(Stubs())
    with legacy(record_shapes=True) as prof:
        work()
    trace = toyland.exported(prof, tmp_path)
    assert toyland.names(trace, "cpu_op") == ["aten::ones", "aten::empty", "aten::fill_", "aten::neg"]
    assert toyland.names(trace, "kernel", "gpu_memcpy", "privateuse1_runtime") == []
    assert json.dumps(trace["deviceProperties"]) == "[]"


def test_a_legacy_profile_asks_no_profiler_plugin(join_stubs: JoinStubs, join: Join) -> None:
    plugin = join(torch_device=toyland.backend())
    join_stubs(Stubs())
    with legacy():
        work()
    assert plugin.sessions == []


def test_torchs_kineto_profile_asks_no_stubs(join_stubs: JoinStubs, join: Join) -> None:
    stubs = join_stubs(Stubs())
    join()
    with toyland.profile():
        work()
    assert stubs.calls == []


def raising(*args: Any) -> Any:
    raise ValueError("broken stub")


async def later() -> float:
    return 1.0


FAULTS: dict[str, Callable[[], Any]] = {
    "raises": raising,
    "leaves": lambda: (_ for _ in ()).throw(SystemExit(3)),
    "returns nonsense": later,
    "returns nothing": lambda: None,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", ["record", "elapsed"])
def test_a_stub_that_misbehaves_costs_its_events_and_one_warning(
    join_stubs: JoinStubs, method: str, fault: str
) -> None:
    stubs = join_stubs(Stubs(**{method: FAULTS[fault]}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with legacy() as prof:
            work()
        times = device_us(prof)
    assert times == dict.fromkeys(("aten::ones", "aten::empty", "aten::fill_", "aten::neg"), (0, 0))
    told = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    if (method, fault) == ("record", "returns nothing"):  # the plugin's way to say that it has no event
        assert told == []
    else:
        (warning,) = told
        assert f"stubs.{method}" in warning
    assert stubs.count("record") == 8

    stubs.faults.clear()
    with legacy() as prof:
        work()
    assert device_us(prof)["aten::ones"] == (50, 30)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("fault", matrix.FAULTS)
@pytest.mark.parametrize("stub", matrix.STUBS)
def test_what_a_stub_that_misbehaves_costs_is_what_the_matrix_says(
    join_stubs: JoinStubs, stub: str, fault: str
) -> None:
    trouble = land.Faults("torch")
    acts = {"hang": trouble.slow, "flood": lambda work: [work()] * 1_000_000}
    stubs = Stubs()
    right, misbehave = getattr(stubs, stub), acts.get(fault) or trouble.of(stub, fault)
    setattr(stubs, stub, lambda *args: misbehave(lambda: right(*args)))
    join_stubs(stubs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with legacy() as prof:
            torch.ones(3)
        times = device_us(prof)
        done = stub in ("record", "elapsed") or drive(stub)
    told = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    expected = matrix.stub_cell(stub, fault)
    if expected in (Verdict.NO_EVENT, Verdict.UNDONE):
        (warning,) = told
        # any object may be an event: that it is none of its own is found by the plugin's `elapsed`
        assert (f"stubs.{stub}" if stub != "record" or fault == "raise" else "stubs.elapsed") in warning
    else:
        assert told == []
    assert set(times) == {"aten::ones", "aten::empty", "aten::fill_"}
    assert any(total for total, _ in times.values()) == (expected is not Verdict.NO_EVENT)
    assert done or expected is Verdict.UNDONE
    if fault == "re-enter":
        assert trouble.refused
        assert all("start() inside a plugin's " in text for text in trouble.refused), trouble.refused
    if fault == "fork":
        assert {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in trouble.children} == {0}


def drive(stub: str) -> bool:
    """Have torch call one of the other stubs; return whether it did what it is for, where that can be seen."""
    return toyland.drive_stubs(stub)[0] == {"enabled": 1, "on_each_device": 3}.get(stub, 0)


@pytest.mark.parametrize(
    ("value", "shown"), [(math.nan, 0), (math.inf, None), (-5.0, 0), (0.4, 0), (7, 7), (1e30, None)]
)
def test_strange_times_break_no_table(join_stubs: JoinStubs, value: float, shown: float | None) -> None:
    join_stubs(Stubs(elapsed=lambda: value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        with legacy() as prof:
            torch.zeros(3)
        times = device_us(prof)
        prof.key_averages().table()
    if shown is not None:
        assert times["aten::empty"] == (shown, shown)


def test_every_other_stub_is_forwarded_with_its_arguments(join_stubs: JoinStubs) -> None:
    stubs = join_stubs(Stubs())
    with legacy():
        pass
    stubs.calls.clear()
    assert toyland.drive_stubs("mark", "a mark é") == (0, [])
    assert toyland.drive_stubs("range_push", "a range") == (0, [])
    assert toyland.drive_stubs("range_pop") == (0, [])
    assert toyland.drive_stubs("synchronize") == (0, [])
    assert toyland.drive_stubs("enabled") == (1, [])
    assert toyland.drive_stubs("on_each_device") == (3, [0, 1, 2])
    assert stubs.calls == [
        ("mark", "a mark é"),
        ("range_push", "a range"),
        ("range_pop",),
        ("synchronize",),
        ("enabled",),
        ("on_each_device",),
    ]


@pytest.mark.parametrize("method", ["mark", "range_push", "range_pop", "synchronize", "enabled", "on_each_device"])
def test_any_other_stub_may_raise_too(join_stubs: JoinStubs, method: str) -> None:
    join_stubs(Stubs(**{method: raising}))
    with legacy():
        pass
    with pytest.warns(PluginWarning, match=f"stubs.{method}.*broken stub"):
        answer, _ = toyland.drive_stubs(method)
    assert answer == 0


class Watched(Stubs):
    """Stubs that know which of their events are still there."""

    def __init__(self) -> None:
        super().__init__()
        self._recorded: list[weakref.ref[Any]] = []

    def record(self) -> Any:
        event = super().record()
        self._recorded.append(weakref.ref(event))
        return event

    @property
    def alive(self) -> int:
        return sum(event() is not None for event in self._recorded)


def in_thread(body: Callable[[], None]) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("where", ["here", "on another thread"])
def test_events_live_as_long_as_their_result_and_no_longer(join_stubs: JoinStubs, where: str) -> None:
    stubs = Watched()
    join_stubs(stubs)
    results = []
    for _ in range(2):
        with legacy() as prof:
            for _ in range(300):
                work()
        results.append(prof)
    del prof
    gc.collect()
    assert stubs.alive == 2 * 2400
    if where == "here":
        results.pop()
    else:
        in_thread(lambda: results.__delitem__(-1))
    assert stubs.alive == 2400
    assert len(results[0].function_events) == 1200
    results.clear()
    assert stubs.alive == 0


def test_events_that_the_main_thread_had_no_turn_for_are_gone_once_the_next_profile_starts(
    join_stubs: JoinStubs,
) -> None:
    """It waits for the thread here, as in a program that trains on another one."""
    stubs = Watched()
    join_stubs(stubs)
    alive: list[int] = []

    def body() -> None:
        for _ in range(3):
            with legacy():
                alive.append(stubs.alive)
                work()

    in_thread(body)
    assert alive == [0, 0, 0]
    assert stubs.alive == 0


def test_stubs_on_several_threads_are_each_called_on_the_ops_thread(join_stubs: JoinStubs) -> None:
    stubs = join_stubs(Stubs())
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)

    with legacy(experimental_config=config):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert {thread.ident for thread in threads} <= stubs.threads | {None}
    assert stubs.count("record") == 2 * 4 * 4


def test_two_plugins_stubs_take_turns_when_the_first_is_taken_out(join_stubs: JoinStubs) -> None:
    first, second = Stubs(), Stubs()
    for stubs in (first, second, first):
        name = toyland.take_in(stubs=stubs)
        before = stubs.count("record")
        with legacy():
            torch.zeros(3)
        toyland.take_out(name)
        assert stubs.count("record") > before


def test_another_backends_stubs_stay_in_place(program: Program) -> None:
    facts = program(
        """
        import warnings
        import toyland, torch
        from devprof.errors import DevprofWarning

        other = toyland.other_backend()
        other.other_register_stubs()
        with toyland.alone():
            stubs = toyland.Stubs()
            name = toyland.take_in(stubs=stubs)
            told = []
            for _ in range(2):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    with torch.autograd.profiler.profile(use_device=toyland.backend()) as prof:
                        torch.ones(3).neg()
                told.append([str(one.message) for one in caught if issubclass(one.category, DevprofWarning)])
            times = [row.device_time_total for row in prof.key_averages() if row.key == "aten::ones"]
            toyland.take_out(name)
        toyland.say(ours=stubs.calls, theirs=other.other_recorded(), told=told, times=times)
        """,
        timeout_s=100,
    )
    assert facts["ours"] == []
    assert facts["theirs"] == 16
    assert facts["times"] == [5]
    assert "already uses the stubs of another backend" in facts["told"][0][0]
    assert [len(told) for told in facts["told"]] == [1, 1]
