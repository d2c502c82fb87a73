"""Every check catches its broken plugin, and no other one; a right plugin keeps every promise."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import zoo
from toy import PushedProfiler, ToyDevice, ToyProfiler, ToyStubs, ToyWorkload

from devprof.testing import plugin_of
from devprof.testing.conformance import (
    CHECKS,
    Bench,
    Check,
    Device,
    Finding,
    Settings,
    State,
    Subject,
    judge,
    settle,
)

THOROUGH = Settings(sessions=20, kernels=600, drift_s=0.3, ops=300)
QUICK = Settings(sessions=5, kernels=100, drift_s=0.1, ops=100)
"""For plugins whose defect has nothing to do with how long or how much: the other checks only have to let them pass."""
ABOUT_HOW_MUCH = ("C5", "C6", "C9")
NUMBERS = [check.number for check in CHECKS]
WITHOUT_TORCH = [check for check in CHECKS if "python" in check.hosts]
"""The rest is told apart in `test_under_torch.py`."""
ANIMALS = [animal for animal in zoo.ANIMALS if animal.number in {check.number for check in WITHOUT_TORCH}]


@pytest.fixture(scope="module", autouse=True)
def _little_to_collect() -> Iterator[None]:
    """Keep what is here already out of each collection: the checks for leaks collect several times per plugin."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def findings_of(make: Any, importable: str = "", settings: Settings = THOROUGH) -> list[Finding]:
    """Judge every check, each on a fresh plugin, so that no defect of one session spoils the next check."""
    found = [_judged(check, make, importable, settings) for check in WITHOUT_TORCH]
    return [settle(one, found) for one in found]


def _judged(check: Check, make: Any, importable: str, settings: Settings) -> Finding:
    plugin, workload = make()
    with Subject(plugin) as subject:
        subject.importable = importable
        return judge(check, Bench(subject, Device(workload), settings=settings))


def _numbers(findings: list[Finding], state: State) -> set[str]:
    return {one.check.number for one in findings if one.state is state}


def test_every_check_has_its_broken_plugin() -> None:
    assert [animal.number for animal in zoo.ANIMALS] == NUMBERS


@pytest.mark.parametrize("animal", ANIMALS, ids=lambda animal: f"{animal.number} {animal.defect}")
def test_a_broken_plugin_is_caught_by_its_own_check_alone(animal: zoo.Animal) -> None:
    settings = THOROUGH if animal.number.startswith(ABOUT_HOW_MUCH) else QUICK
    found = findings_of(animal.plugin, animal.importable, settings)
    failed = {one.check.number: one for one in found if one.state is State.FAILED}
    expected = {animal.number} | zoo.COMPANIONS.get(animal.number, frozenset())
    assert set(failed) == expected, "\n".join(one.text for one in failed.values())
    # what is undecided is so because of a check that failed, or that is undecided itself
    undecided = [one for one in found if one.state is State.UNDECIDED]
    assert {one.because_of for one in undecided} <= expected | {one.check.number for one in undecided}


@pytest.mark.parametrize("profiler", [ToyProfiler, PushedProfiler])
def test_a_right_plugin_keeps_every_promise(profiler: type[ToyProfiler]) -> None:
    def make() -> Any:
        device = ToyDevice()
        return plugin_of(profiler(device), stubs=ToyStubs(device)), ToyWorkload(device)

    found = findings_of(make)
    assert _numbers(found, State.FAILED) == _numbers(found, State.UNDECIDED) == set()
    assert _numbers(found, State.SKIPPED) == {"C103"} | ({"C307"} if profiler is ToyProfiler else set())


def test_a_failure_says_what_was_expected_what_came_why_and_where_it_is_explained() -> None:
    (animal,) = (one for one in zoo.ANIMALS if one.number == "C407")
    (finding,) = (one for one in findings_of(animal.plugin) if one.state is State.FAILED)
    words = [line.strip().partition(":")[0] for line in finding.text.splitlines()]
    assert words[1:4] == ["expected", "found", "likely cause"]
    assert finding.text.splitlines()[-1].strip() == "explained by: devprof conform --explain C407"
    assert finding.text.startswith("C407 A call of the runtime carries the native id of the thread that made it.")
