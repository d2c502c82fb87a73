"""The front door on a host that only notes what it is asked: life, order, results, refusals."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import devprof
import devprof.host
from devprof.capture import last_report, report_of
from devprof.errors import SessionError, UsageError
from devprof.profiler import ProfilerAction, profile, schedule, step_tracker
from devprof.profiler.runs import PROFILES

CYCLE = ["prepare", "start", "stop"]


def line_of(text: str) -> int:
    """Return the number of the only line of this file that holds a text, besides the call's own."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if text in line and "line_of" not in line)
    return found


# -- life --------------------------------------------------------------------------------------------------------------


def test_a_with_block_is_one_cycle(noting: Any) -> None:
    with profile() as prof:
        assert noting[0].calls == ["prepare", "start"]
    assert noting[0].calls == CYCLE
    assert [event.name for event in prof.events()] == ["cycle 1"]


def test_a_schedule_hands_every_trace_over_and_names_its_steps(noting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: list[str] = []

    class Range:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            ranges.append(f"+{self.name}")

        def __exit__(self, *error: object) -> None:
            ranges.append(f"-{self.name}")

    monkeypatch.setattr("devprof.profiler.front_door.record_function", Range)
    ready: list[str] = []
    plan = schedule(wait=1, warmup=1, active=1, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda prof: ready.append(prof.events()[0].name)) as prof:
        actions = []
        for _ in range(7):
            actions.append(prof.current_action)
            prof.step()
    assert actions == [plan(step) for step in range(7)]
    assert ready == ["cycle 1", "cycle 2"]
    assert noting[0].calls == CYCLE * 2
    assert ranges == [f"{sign}ProfilerStep#{step}" for step in range(8) for sign in "+-"]


def test_start_and_stop_may_be_on_different_threads(noting: Any) -> None:
    prof = profile()
    for call in (prof.start, prof.step, prof.stop):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(call).result(timeout=10)
    assert noting[0].calls == CYCLE


def test_a_profile_can_be_used_again_and_knows_its_latest_cycle(noting: Any) -> None:
    prof = profile()
    for _ in range(2):
        with prof:
            pass
    assert [event.name for event in prof.events()] == ["cycle 2"]


def test_with_acc_events_figures_are_over_all_cycles(noting: Any) -> None:
    prof = profile(acc_events=True)
    for _ in range(3):
        with prof:
            pass
    assert [event.name for event in prof.events()] == ["cycle 1", "cycle 2", "cycle 3"]
    assert prof.trace.name_of(0) == "cycle 3"
    assert {row.key: row.count for row in prof.key_averages()} == {f"cycle {n}": 1 for n in (1, 2, 3)}


def test_an_exception_in_the_block_reaches_the_user_and_the_trace_is_there(noting: Any) -> None:
    with pytest.raises(ZeroDivisionError), profile() as prof:
        _ = 1 / 0
    assert len(prof.trace) == 1


def test_a_block_that_stops_its_own_profile_ends_quietly(noting: Any) -> None:
    with profile() as prof:
        prof.stop()
    assert noting[0].calls == CYCLE


def test_what_the_callback_raises_reaches_the_user_and_a_new_profile_can_start(noting: Any) -> None:
    def callback(prof: Any) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), profile(on_trace_ready=callback) as prof:
        pass
    assert len(prof.trace) == 1
    with profile():
        pass


def test_an_interrupt_during_the_stop_comes_out_when_trace_and_callback_are_done(noting: Any) -> None:
    ready: list[int] = []
    prof = profile(on_trace_ready=lambda prof: ready.append(len(prof.trace)))
    prof.start()
    noting[0].raises["stop"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        prof.stop()
    assert ready == [1]
    assert PROFILES.holder is None


@pytest.mark.parametrize("call", ["prepare", "start"])
def test_a_profile_that_cannot_start_leaves_room_for_another(noting: Any, call: str) -> None:
    prof = profile()
    noting[0].raises[call] = RuntimeError("not now")
    with pytest.raises(RuntimeError, match="not now"):
        prof.start()
    assert noting[0].calls[-1] == "cancel"
    with prof:
        pass
    assert len(prof.trace) == 1


# -- one at a time -----------------------------------------------------------------------------------------------------


def test_a_nested_start_names_the_line_of_the_other(noting: Any) -> None:
    outer = profile()
    outer.start()  # the outer one
    with pytest.raises(SessionError, match="is running already, started at") as refused, profile():
        pass
    outer.stop()
    assert f"{__file__}:{line_of('# the outer one')}" in str(refused.value)
    assert [host.calls for host in noting] == [CYCLE, []]


def test_a_second_start_of_the_same_profile_is_refused_and_the_first_goes_on(noting: Any) -> None:
    with profile() as prof, pytest.raises(SessionError, match="is running already"):
        prof.start()
    assert noting[0].calls == CYCLE


def test_of_many_threads_that_start_at_once_exactly_one_records(noting: Any) -> None:
    profiles = [profile() for _ in range(8)]
    barrier = threading.Barrier(8)

    def start(prof: Any) -> bool:
        barrier.wait(timeout=10)
        try:
            prof.start()
        except SessionError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(start, profiles))
    assert sum(started) == 1
    profiles[started.index(True)].stop()


def test_a_profile_that_does_not_run_cannot_be_stopped(noting: Any) -> None:
    with pytest.raises(SessionError, match=r"stop\(\) on a profile that is not running"):
        profile().stop()


def test_steps_of_a_profile_that_does_not_run_are_counted_and_nothing_else_is_done(noting: Any) -> None:
    prof = profile(schedule=schedule(wait=1, warmup=1, active=2))
    seen = []
    for _ in range(6):
        prof.step()
        seen.append((prof.step_num, prof.current_action.name))
    assert seen == [
        (1, "WARMUP"),
        (2, "RECORD"),
        (3, "RECORD_AND_SAVE"),
        (4, "NONE"),
        (5, "WARMUP"),
        (6, "RECORD"),
    ]
    assert noting[0].calls == []
    with profile():
        pass  # nobody holds the place


def test_a_profile_that_is_stepped_before_its_start_and_after_its_stop_goes_on_at_its_step(noting: Any) -> None:
    prof = profile(schedule=schedule(wait=1, warmup=1, active=1))
    prof.step()
    prof.start()
    assert noting[0].calls == ["prepare"]
    prof.step()
    prof.stop()
    assert (noting[0].calls, prof.step_num) == (CYCLE, 2)
    prof.step()
    assert (noting[0].calls, prof.step_num, [event.name for event in prof.events()]) == (CYCLE, 3, ["cycle 1"])


def test_the_schedule_is_checked_before_the_start_too(noting: Any) -> None:
    prof = profile(schedule=lambda step: ProfilerAction.RECORD if step < 2 else "often")
    prof.step()
    with pytest.raises(UsageError, match="step 2"):
        prof.step()
    assert (prof.step_num, prof.current_action) == (1, ProfilerAction.RECORD)


@pytest.mark.parametrize("call", ["stop", "step", "start"])
def test_the_callback_may_read_the_profile_and_not_move_it(noting: Any, call: str) -> None:
    refused: list[str] = []

    def callback(prof: Any) -> None:
        with pytest.raises(SessionError) as error:
            getattr(prof, call)()
        refused.append(str(error.value))

    with profile(on_trace_ready=callback):
        pass
    assert len(refused) == 1


def test_a_profile_that_is_dropped_while_it_records_is_ended_and_blocks_nobody(noting: Any) -> None:
    prof = profile()
    prof.start()
    del prof
    gc.collect()
    assert noting[0].calls == ["prepare", "start", "cancel"]
    with profile():
        pass


def test_in_a_forked_child_the_copy_records_nothing_and_a_new_profile_can_start(noting: Any) -> None:
    ready: list[str] = []
    with profile(on_trace_ready=lambda prof: ready.append("ready")) as prof:
        child = os.fork()
        if child == 0:
            fine = False
            try:
                prof.stop()
                with profile():
                    pass
                fine = noting[0].calls == ["prepare", "start"] and noting[1].calls == CYCLE and not ready[1:]
            finally:
                os._exit(0 if fine else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert ready == ["ready"]
    assert noting[0].calls == CYCLE


# -- what there is to know ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda prof: prof.trace,
        lambda prof: prof.events(),
        lambda prof: prof.key_averages(),
        lambda prof: prof.total_average(),
        lambda prof: prof.self_cpu_time_total,
        lambda prof: prof.table(),
        lambda prof: prof.export_chrome_trace("trace.json"),
    ],
)
def test_before_anything_is_recorded_every_question_says_so(noting: Any, ask: Any) -> None:
    with pytest.raises(UsageError, match="nothing is recorded yet"):
        ask(profile())


def test_a_report_needs_a_cycle_that_has_stopped(noting: Any) -> None:
    prof = profile()
    with pytest.raises(UsageError, match="there is no report"):
        _ = prof.report
    with pytest.raises(UsageError, match="no devprof report belongs to this profile"):
        report_of(prof)
    with prof:
        pass
    assert prof.report is report_of(prof) is last_report() is noting[0].report


def test_events_can_be_exported_as_torchs_can(noting: Any, tmp_path: Path) -> None:
    with profile() as prof:
        pass
    prof.events().export_chrome_trace(str(tmp_path / "trace.json"))
    assert len(devprof.load(tmp_path / "trace.json").named("cycle 1")) == 1
    with pytest.raises(UsageError, match="no metric 'time'"):
        prof.events().export_stacks(str(tmp_path / "stacks"), "time")


def test_stacks_need_to_be_recorded(noting: Any, tmp_path: Path) -> None:
    with profile() as prof:
        pass
    with pytest.raises(UsageError, match="with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks"))


def test_it_says_what_it_is_before_during_and_after(noting: Any) -> None:
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1))
    assert (repr(prof), str(prof)) == ("<devprof.profile host='noting', not started>",) * 2
    with prof:
        prof.step()
        assert repr(prof) == str(prof) == "<devprof.profile host='noting', running, step 1: RECORD_AND_SAVE>"
    assert repr(prof) == "<devprof.profile host='noting', 1 events in 0.000 ms>"
    assert "cycle 1" in str(prof)


def test_metadata_reaches_the_host_as_json_text_and_a_finished_trace_as_a_fact(noting: Any) -> None:
    prof = profile()
    prof.add_metadata("text", 'say "hi"')
    prof.add_metadata_json("numbers", "[1, 2]")
    assert noting[0].metadata == {"text": '"say \\"hi\\""', "numbers": "[1, 2]"}
    with prof:
        pass
    before = prof.trace
    prof.add_metadata_json("late", '{"a": null}')
    assert prof.trace.facts["metadata"] == {"late": {"a": None}}
    assert "metadata" not in before.facts


def test_metadata_that_is_no_json_is_refused(noting: Any) -> None:
    with pytest.raises(UsageError, match="metadata 'key' is 'words', which is no JSON text"):
        profile().add_metadata_json("key", "words")
    for text, words in (("[NaN]", "JSON has no NaN"), ("[" * 10**5, "recursion"), (None, "not NoneType")):
        with pytest.raises(UsageError, match=words):
            profile().add_metadata_json("key", text)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="metadata 'key' has no words in JSON"):
        profile().add_metadata("key", object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a key of the metadata is 5; expected a text"):
        profile().add_metadata(5, "text")  # type: ignore[arg-type]
    assert [host.metadata for host in noting] == [{}] * 6


def test_traces_have_ids_of_the_users_or_of_their_own(noting: Any) -> None:
    names = iter(["one", "two"])
    prof = profile(custom_trace_id_callback=lambda: next(names))
    assert prof.get_trace_id() is None
    found = []
    for _ in range(2):
        with prof:
            found.append(prof.trace_id)
    prof.set_custom_trace_id_callback(None)
    with prof:
        found.append(prof.trace_id)
    assert found[:2] == ["one", "two"]
    assert len(str(found[2])) == 32


def test_a_toggle_reaches_the_host_only_while_the_profile_runs(noting: Any) -> None:
    prof = profile()
    prof.toggle_collection_dynamic(False, ["cpu"])
    with prof:
        prof.toggle_collection_dynamic(False, ["cpu", "openreg"])
    assert noting[0].calls == ["prepare", "start", (False, ["CPU", "openreg"]), "stop"]


def test_an_export_gets_the_trace_as_the_user_sees_it(noting: Any, tmp_path: Path) -> None:
    with profile() as prof:
        pass
    prof.export_chrome_trace(tmp_path / "trace.json")  # type: ignore[arg-type]  # any path will do
    assert noting[0].calls[-1] == (str(tmp_path / "trace.json"), 1)


def test_steps_are_counted_for_everybody(noting: Any) -> None:
    before = step_tracker.current_step()
    with profile() as prof:
        for _ in range(3):
            prof.step()
    assert step_tracker.current_step() == before + 3
    assert prof.step_num == 3
    assert prof.current_action is ProfilerAction.RECORD


def test_a_host_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="host is 'rust'; expected 'auto', 'torch', 'python'"):
        profile(host="rust")


@pytest.mark.parametrize("name", ["schedule", "on_trace_ready"])
def test_what_cannot_be_called_is_no_schedule_and_no_callback(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is 3; expected a function"):
        profile(**{name: 3})


def test_ranges_are_the_front_doors_own() -> None:
    assert devprof.host.record_function is __import__("devprof").record_function
