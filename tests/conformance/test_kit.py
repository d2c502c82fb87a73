"""The kit itself: what an author writes, what a failure looks like, and what the kit leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest
from toy import Done, ToyDevice, ToyProfiler, ToySession, ToyWorkload

from devprof import registry
from devprof.contract import Capabilities, CorrelationAccess, IActivityProfilerSession, SessionConfig
from devprof.errors import PluginWarning, UsageError
from devprof.model import ActivityType
from devprof.profiler import profile
from devprof.testing import plugin_of
from devprof.testing.conformance import (
    CHECKS,
    Bench,
    Check,
    Device,
    Report,
    Settings,
    State,
    Subject,
    Undecided,
    features_of,
    judge,
    run_checks,
    settle,
)
from devprof.testing.conformance.watching import Watch

HERE = Path(__file__).parent
AUTHORS_FILE = """
from devprof.testing.conformance import ProfilerConformance, Settings
from toy import ToyDevice, ToyProfiler, ToySession, ToyWorkload

DEVICE = ToyDevice()

class Session(ToySession):
    {defect}

class Profiler(ToyProfiler):
    session = Session

class TestToy(ProfilerConformance):
    settings = Settings(sessions=20, kernels=600, drift_s=0.1, ops=100)

    def plugin():
        return Profiler(DEVICE)

    def workload():
        return ToyWorkload(DEVICE)
"""
WITHOUT_TORCH = [check for check in CHECKS if "python" in check.hosts]
NAMES = {check.number: check for check in CHECKS}


def run_tests(folder: Path, defect: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an author's file as the author would."""
    (folder / "test_toy.py").write_text(AUTHORS_FILE.format(defect=defect), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "devprof.testing.pytest_plugin",
        *words,
    ]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def subject_of(profiler: Any) -> Subject:
    return Subject(plugin_of(profiler))


def toy_bench(subject: Subject, device: ToyDevice) -> Bench:
    return Bench(
        subject, Device(ToyWorkload(device)), settings=Settings(sessions=10, kernels=100, drift_s=0.1, ops=100)
    )


def test_an_authors_file_is_short_and_green_for_a_right_plugin(tmp_path: Path) -> None:
    assert len(AUTHORS_FILE.strip().splitlines()) < 30
    done = run_tests(tmp_path, "pass")
    assert done.returncode == 0, done.stdout
    n = len(WITHOUT_TORCH)
    # C103 needs a plugin that can be imported, C307 one that is told of each op, three more have stubs
    assert f"toy: {n - 5} of {n - 5} checks hold, 5 skipped" in done.stdout
    assert "Features of CUDA's traces: 15 of 20" in done.stdout


def test_a_failure_is_the_checks_words_and_no_traceback(tmp_path: Path) -> None:
    done = run_tests(tmp_path, "def get_device_infos(self): return None", "-rs", "-k", "c106 or c301")
    assert done.returncode == 1
    expected = (
        "C106 A plain session goes through every hook without a failure.\n"
        "  expected: no failure\n"
        "  found: plugin 'toy', session.get_device_infos: returned None, expected a list or tuple of DeviceInfo: "
        "is a 'return' missing?\n"
    )
    assert expected in done.stdout
    assert "explained by: devprof conform --explain C106" in done.stdout
    assert "Traceback" not in done.stdout
    assert "case.py" not in done.stdout.partition("short test summary")[0]
    assert "C301 undecided: the plugin was set aside" in done.stdout


def test_the_pytest_plugin_loads_nothing_of_devprof_and_says_nothing_where_no_conformance_test_ran(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    loaded = {name for name in sys.modules if name.split('.')[0] in ('devprof', 'numpy', 'pluggy_', 'torch')}\n"
        "    assert loaded == {'devprof', 'devprof.testing', 'devprof.testing.pytest_plugin'}\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "devprof.testing.pytest_plugin"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "devprof" not in done.stdout


def test_what_is_registered_for_the_tests_is_taken_out_again() -> None:
    before = [plugin.name for plugin in registry.discover().plugins]
    with subject_of(ToyProfiler(ToyDevice())) as subject:
        assert subject.title == "toy"
        assert len(registry.discover().plugins) == len(before) + 1
    assert [plugin.name for plugin in registry.discover().plugins] == before


@pytest.mark.parametrize("wrong", ["no such plugin", "no_such_module:plugin", 7, ToyDevice])
def test_what_is_no_plugin_is_refused_with_what_is_expected(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"no profiler named|cannot be imported|expected the name of an installed one"):
        Subject(wrong)


def test_without_a_workload_what_needs_one_is_skipped_by_name() -> None:
    with subject_of(ToyProfiler(ToyDevice())) as subject:
        found = run_checks(CHECKS, lambda host: Bench(subject, Device(None), host, Settings(ops=100)))
        report = Report(subject.title, found, features_of(Bench(subject, Device(None))))
    assert report.passed
    assert {one.reason for one in found if one.check.number == "C301"} == {"needs a workload"}
    held = [one.check.number for one in found if one.state is State.HELD]
    assert held == ["C101", "C102", "C105", "C905"]
    assert report.features == {}
    assert report.summary == f"toy: 4 of 4 checks hold, {len(WITHOUT_TORCH) - 4} skipped"


def test_a_check_that_blames_one_that_holds_has_failed() -> None:
    def blame(bench: Bench) -> None:
        raise Undecided("C101", "no reason")

    with subject_of(ToyProfiler(ToyDevice())) as subject:
        bench = toy_bench(subject, ToyDevice())
        right = judge(NAMES["C101"], bench)
        check = Check("C199", "blames", "Blames.", "", "A mistake in the check.", (), ("python",), blame)
        found = judge(check, bench)
    assert (right.state, found.state) == (State.HELD, State.UNDECIDED)
    assert settle(found, [found]).state is State.UNDECIDED
    assert settle(found, [right, found]).state is State.FAILED


def test_a_workload_that_raises_is_a_failure_with_its_error() -> None:
    class Broken(ToyWorkload):
        def launch(self, name: str, n: int, device: int = 0, stream: int = 0) -> None:
            raise OSError("the device is not there")

    device = ToyDevice()
    with subject_of(ToyProfiler(device)) as subject:
        found = judge(NAMES["C401"], Bench(subject, Device(Broken(device))))
    assert (found.state, found.found) == (State.FAILED, "it raised OSError('the device is not there')")


def test_a_plugin_that_devprof_leaves_out_fails_one_check_and_leaves_the_others_undecided() -> None:
    class Wrong(ToyProfiler):
        def available_activities(self) -> Set[ActivityType]:
            return ["kernel"]  # type: ignore[return-value]

    with subject_of(Wrong(ToyDevice())) as subject:
        found = run_checks(CHECKS, lambda host: toy_bench(subject, ToyDevice()))
    failed = [one for one in found if one.state is State.FAILED]
    assert [one.check.number for one in failed] == ["C102"]
    assert "profiler.available_activities: returned list" in failed[0].found
    assert {one.state for one in found} == {State.FAILED, State.UNDECIDED}


def test_the_report_says_n_of_m_by_area_and_as_json() -> None:
    with subject_of(ToyProfiler(ToyDevice())) as subject:
        found = [
            judge(NAMES["C101"], toy_bench(subject, ToyDevice())),
            judge(NAMES["C103"], toy_bench(subject, ToyDevice())),
        ]
    report = Report("toy", found, {"kernels": True, "waits": False})
    lines = report.lines()
    assert "import: an installed one" in lines.pop(1)
    assert lines == [
        "Registration and lifecycle: 1 of 1",
        "Features of CUDA's traces: 1 of 2",
        "  there: kernels",
        "  absent: waits",
        "toy: 1 of 1 checks hold, 1 skipped",
    ]
    assert report.as_dict()["counts"] == {"held": 1, "failed": 0, "skipped": 1, "undecided": 0}


@pytest.mark.parametrize("number", ["C603", "C604"])
def test_a_workload_that_loses_nothing_has_nothing_to_tell(number: str) -> None:
    class Keeps(ToyDevice):
        def lose(self, n: int) -> None:
            pass

    device = Keeps()
    with subject_of(ToyProfiler(device)) as subject:
        found = judge(NAMES[number], toy_bench(subject, device))
    reason = "needs a workload that loses something: all 5 kernels came after lose(2)"
    assert (found.state, found.reason) == (State.SKIPPED, reason)


def test_work_that_still_runs_when_a_session_starts_is_no_mistake_of_the_plugin() -> None:
    class Slow(ToyDevice):
        """Tells of work when it is over, and whoever records by then hears of it."""

        def __init__(self) -> None:
            super().__init__()
            self.under_way: list[Done] = []

        def _done(self, *args: Any) -> Done:
            self.under_way.append(super()._done(*args))
            return self.under_way[-1]

        def synchronize(self) -> None:
            super().synchronize()
            self.under_way.clear()

    class HearsOfIt(ToySession):
        def start(self) -> None:
            super().start()
            self.done += self.device.under_way  # type: ignore[attr-defined]

    device = Slow()
    profiler = ToyProfiler(device)
    profiler.session = HearsOfIt
    with subject_of(profiler) as subject:
        assert judge(NAMES["C111"], toy_bench(subject, device)).state is State.HELD


# -- watching ----------------------------------------------------------------------------------------------------------


class Slotted:
    """A profiler that takes no attribute."""

    __slots__ = ()

    def name(self) -> str:
        return "slotted"

    def capabilities(self) -> Capabilities:
        return Capabilities(correlation=CorrelationAccess.READ)

    def available_activities(self) -> Set[ActivityType]:
        return frozenset({ActivityType.CONCURRENT_KERNEL})

    def configure(self, activity_types: Set[ActivityType], config: SessionConfig, **planned: Any) -> Any:
        return Inheriting()


class Inheriting(IActivityProfilerSession):
    """A session with what is required; the rest is the protocol's."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def process_trace(self, logger: Any, get_linked_activity: Any, start_ns: int, end_ns: int) -> None:
        pass


def test_a_watch_sees_the_calls_that_devprof_makes_and_goes_without_a_trace() -> None:
    original = Slotted.configure
    with subject_of(Slotted()) as subject, Watch(subject.profiler.profiler) as watch:  # type: ignore[union-attr]
        capture = Bench(subject, Device(None)).session(lambda capture: None)
        assert capture.seen.calls == ["start", "stop", "process_trace"]
        assert watch.sessions[0].calls == capture.seen.calls
    assert Slotted.configure is original


def test_a_watched_plugin_that_misbehaves_is_reported_as_ever() -> None:
    class Raises(ToySession):
        def start(self) -> None:
            raise RuntimeError("no")

    profiler = ToyProfiler(ToyDevice())
    profiler.session = Raises
    with subject_of(profiler) as subject, pytest.raises(Undecided, match=r"session\.start"):
        Bench(subject, Device(None)).session(lambda capture: None)
    with subject_of(profiler) as subject, Watch(profiler):
        prof = profile(activities=["toy"], host="python")
        with pytest.warns(PluginWarning, match=r"session\.start"):
            prof.start()
        prof.stop()
    assert "configure" not in vars(profiler)
