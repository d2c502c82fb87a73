"""The kit on recordings of itself: a right backend passes again, a broken one and every injected fault are caught again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zoo
from toy import PushedProfiler, ToyDevice, ToyProfiler, ToyStubs, ToyWorkload

from devprof.errors import TraceFileError, UsageError
from devprof.replay import FAULTS, Recording, load, save
from devprof.testing import plugin_of
from devprof.testing.conformance import (
    CHECKS,
    Bench,
    Check,
    Device,
    Finding,
    KitRecorder,
    Settings,
    State,
    Subject,
    replayed,
    run_checks,
    settings_of,
)

QUICK = Settings(sessions=20, kernels=600, drift_s=0.3, ops=300)
HERE = Path(__file__).parent

Make = Callable[[], Any]


def right(kind: type[ToyProfiler] = ToyProfiler) -> Any:
    device = ToyDevice()
    return plugin_of(kind(device), stubs=ToyStubs(device)), ToyWorkload(device)


def recorded(make: Make, checks: tuple[Check, ...] = CHECKS) -> tuple[Recording, list[Finding]]:
    """Run the kit on a plugin, and record it."""
    plugin, workload = make()
    with Subject(plugin) as subject, KitRecorder(subject, workload, QUICK) as recorder:
        findings = run_checks(checks, lambda host: Bench(subject, recorder.device, host, QUICK))
        return recorder.recording(findings), findings


def judged_again(
    recording: Recording, faults: str = "", checks: tuple[Check, ...] = CHECKS, hosts: tuple[str, ...] = ("python",)
) -> list[Finding]:
    """Run the kit on a recording."""
    profiler, workload = replayed(recording, faults)
    with Subject(profiler) as subject:
        return run_checks(checks, lambda host: Bench(subject, Device(workload), host, settings_of(recording)), hosts)


def numbers(findings: list[Finding], state: State) -> set[str]:
    return {one.check.number for one in findings if one.state is state}


def texts(findings: list[Finding]) -> str:
    return "\n".join(one.text for one in findings if one.state in (State.FAILED, State.UNDECIDED))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A run of the kit on the right toy, from its file."""
    found, findings = recorded(right)
    assert numbers(findings, State.FAILED) == numbers(findings, State.UNDECIDED) == set(), texts(findings)
    path = tmp_path_factory.mktemp("recorded") / "toy.devrec"
    save(found, path)
    return load(path)


NOT_OF_A_RECORDING = {"C103", "C307", "C605", "C801", "C802", "C803", "C903", "C904"}
"""An import, pops of a plugin that reads ids, records before the end, stubs, and what the plugin's own code leaves behind."""


def test_a_right_backend_keeps_every_promise_again(recording: Recording) -> None:
    found = judged_again(recording)
    assert numbers(found, State.FAILED) == numbers(found, State.UNDECIDED) == set(), texts(found)
    assert numbers(found, State.SKIPPED) == NOT_OF_A_RECORDING


def test_so_does_one_that_is_told_of_each_op() -> None:
    found, _ = recorded(lambda: right(PushedProfiler))
    again = judged_again(found)
    assert numbers(again, State.FAILED) == numbers(again, State.UNDECIDED) == set(), texts(again)
    assert numbers(again, State.SKIPPED) == NOT_OF_A_RECORDING - {"C307"}


CAUGHT = {
    "reorder": set(),
    "missing-flush": {"C401"},
    "drop:3": {"C401"},
    "drop-told:3": {"C401"},
    "duplicate:3": {"C401"},
    "wrong-ids": {"C402"},
    "no-ids": {"C403"},
    "launch-ids": {"C404"},
    "clock-offset:50": {"C505"},
    "clock-drift:20000": {"C506"},
    "clock-step:50": {"C507"},
    "late-flush": {"C110", "C401"},
    "raise:start": {"C106"},
    "raise:stop": {"C106"},
    "raise:sample_clock": {"C106"},
    "raise:process_trace": {"C106"},
    "raise:get_device_infos": {"C106"},
    "slow:push_correlation_id=0.0005": {"C905"},
    "slow:stop=0.05": set(),
}
"""By fault the checks that catch it; none: devprof copes with it."""

FURTHER = {
    "missing-flush": {"C107", "C110"},
    "drop:3": {"C110", "C111", "C902"},
    "drop-told:3": {"C110", "C111", "C902"},
    # the longer a loaded machine makes a session, the further away the clock is
    "clock-drift:20000": {"C501", "C503", "C504", "C505", "C507"},
    "clock-step:50": {"C107", "C408", "C501", "C503", "C504", "C505", "C506"},
    "late-flush": {"C201", "C202", "C204", "C402", "C501", "C601", "C722", "C723", "C901", "C902"},
    **{
        f"raise:{hook}": {"C201", "C202", "C304", "C305", "C306", "C701"}
        for hook in ("start", "stop", "process_trace", "get_device_infos")
    },
}
"""Further checks that a fault may fail: those that count the same records, or drive sessions in which the method raises."""


@pytest.mark.parametrize(("fault", "expected"), CAUGHT.items(), ids=CAUGHT)
def test_a_fault_is_caught_by_the_check_that_is_about_it(recording: Recording, fault: str, expected: set[str]) -> None:
    found = judged_again(recording, fault)
    failed = numbers(found, State.FAILED)
    assert expected <= failed <= expected | FURTHER.get(fault, set()), texts(found)


def test_every_fault_that_can_be_asked_for_is_in_the_table() -> None:
    assert {fault.partition(":")[0] for fault in CAUGHT} == set(FAULTS)


def test_a_hook_that_outlasts_its_budget_is_caught(recording: Recording, tmp_path: Path) -> None:
    # a process of its own: the plugin is quarantined for its life
    save(recording, tmp_path / "toy.devrec")
    command = [sys.executable, "-m", "devprof", "conform", "toy.devrec", "--host", "python", "--only", "C106"]
    environment = {**os.environ, "DEVPROF_HOOK_TIMEOUT_S": "0.5"}
    done = subprocess.run(
        [*command, "--fault", "slow:stop=3"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "session.stop: did not come back within 0.5 s" in done.stdout


BROKEN = (
    "C107",
    "C201",
    "C301",
    "C305",
    "C402",
    "C404",
    "C407",
    "C501",
    "C503",
    "C505",
    "C507",
    "C603",
    "C722",
    "C741",
)


@pytest.mark.parametrize("number", BROKEN)
def test_a_recording_of_a_broken_backend_is_caught_by_the_same_check(number: str) -> None:
    (animal,) = (one for one in zoo.ANIMALS if one.number == number)
    checks = tuple(check for check in CHECKS if check.number in {number, "C106", "C401", "C501"})
    found, findings = recorded(animal.plugin, checks)
    assert numbers(findings, State.FAILED) == {number}
    again = judged_again(found, checks=checks)
    assert numbers(again, State.FAILED) == {number}, texts(again)


# -- what does not fit -----------------------------------------------------------------------------------------------------


def test_a_recording_of_a_program_is_none_of_the_kit() -> None:
    golden = load(HERE.parent / "recordings/training_step.devrec")
    with pytest.raises(UsageError, match="record it with `devprof conform PLUGIN --record FILE`"):
        settings_of(golden)


def test_settings_of_another_version_are_refused(recording: Recording) -> None:
    from dataclasses import replace

    with pytest.raises(UsageError, match="another version of the kit"):
        settings_of(replace(recording, settings={"patience": 3}))


def test_a_check_that_asks_for_more_than_was_recorded_says_so(recording: Recording) -> None:
    from dataclasses import replace

    fewer = replace(recording, sessions=[one for one in recording.sessions if one.scope != "C301 python"])
    (found,) = judged_again(fewer, checks=tuple(check for check in CHECKS if check.number == "C301"))
    assert found.state is not State.HELD
    assert "the recording has no session for C301 python" in found.text + found.reason


AUTHORS_FILE = """
from devprof.testing.conformance import ReplayConformance


class TestRecordedToy(ReplayConformance):
    recording = "toy.devrec"
"""


def test_an_authors_test_file_is_three_lines(recording: Recording, tmp_path: Path) -> None:
    save(recording, tmp_path / "toy.devrec")
    (tmp_path / "test_recorded.py").write_text(AUTHORS_FILE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not on_torch", "--no-header"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "-p", "devprof.testing.pytest_plugin"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    n = sum("python" in check.hosts for check in CHECKS) - len(NOT_OF_A_RECORDING)
    assert f"replay: {n} of {n} checks hold, {len(NOT_OF_A_RECORDING)} skipped" in done.stdout


def test_a_file_that_is_no_recording_is_refused_before_the_tests(tmp_path: Path) -> None:
    (tmp_path / "toy.devrec").write_bytes(b"no")
    with pytest.raises(TraceFileError, match="as a devprof recording"):
        replayed(tmp_path / "toy.devrec")
