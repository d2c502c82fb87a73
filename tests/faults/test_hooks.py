"""Every hook, every fault, both hosts: what is seen is what the matrix says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

import pytest

import devprof
from devprof import registry
from devprof.capture import PluginLedger, quarantine
from devprof.capture.verdict import PROCESS_ENDS, SESSION_ENDS
from devprof.contract import TraceStatus
from devprof.model import ActivityType, GenericTraceActivity
from devprof.testing import ScriptedProfiler, plugin_of
from tests.faults.land import BUDGET_S, LIMIT, Faults, FaultyProfiler, Seen, session
from tests.faults.matrix import CELLS, HOOKS, Cell, Kept, Verdict

OTHERS = ["neighbour's", "op", "range"]
"""What every session's trace holds beside the plugin's own record."""

Join = Callable[[ScriptedProfiler], ScriptedProfiler]


@pytest.fixture(autouse=True)
def _only_the_tests_own_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DEVPROF_MAX_RECORDS", str(LIMIT))
    monkeypatch.setenv(
        "DEVPROF_BLOCK_PLUGINS", ",".join(entry.name for entry in entry_points(group=registry.ENTRY_POINT_GROUP))
    )
    monkeypatch.setattr(quarantine, "_ENTRIES", {})
    # the records here carry no op ids on purpose; the warning of that is another test's
    monkeypatch.setattr(PluginLedger, "none_linked", property(lambda self: False))
    registry.refresh()
    yield
    monkeypatch.undo()
    registry.refresh()


@pytest.fixture
def host(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "torch":
        torch = pytest.importorskip("torch", reason="the other host is torch")
        if torch._C._get_privateuse1_backend_name() == "privateuseone":
            torch.utils.rename_privateuse1_backend("toy")
    return name


@pytest.fixture
def join() -> Iterator[Join]:
    taken: list[str] = []

    def join(profiler: ScriptedProfiler) -> ScriptedProfiler:
        registry.register(plugin_of(profiler), profiler.label)
        taken.append(profiler.label)
        return profiler

    yield join
    for name in taken:
        registry.unregister(name)


@pytest.fixture
def neighbour(join: Join) -> ScriptedProfiler:
    kernel = ActivityType.CONCURRENT_KERNEL
    return join(
        ScriptedProfiler(
            label="neighbour",
            script=lambda start_ns, end_ns: [GenericTraceActivity(kernel, "neighbour's", start_ns, start_ns + 100)],
            methods={"status": lambda: TraceStatus.READY},
        )
    )


@pytest.fixture
def faults(host: str) -> Iterator[Faults]:
    faults = Faults(host)
    yield faults
    faults.released.set()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(("hook", "fault", "host"), CELLS, indirect=["host"])
def test_what_is_seen_is_what_the_matrix_says(
    join: Join,
    neighbour: ScriptedProfiler,
    host: str,
    faults: Faults,
    monkeypatch: pytest.MonkeyPatch,
    hook: str,
    fault: str,
) -> None:
    if fault == "hang":
        monkeypatch.setenv("DEVPROF_HOOK_TIMEOUT_S", str(BUDGET_S))
    if fault == "call torch":
        pytest.importorskip("torch", reason="the hook calls torch")
    expected = CELLS[hook, fault, host]
    plugin = FaultyProfiler(hook, faults.of(hook, fault))
    join(plugin)
    seen = session(host, plugin, neighbour, faults.running)
    assert plugin.called, "the hook was never called"
    assert _cell(seen, plugin, hook) == _without_next(expected)
    _check_the_rest(faults, fault)

    plugin.trouble = None
    after = session(host, plugin, neighbour)
    assert after.names == OTHERS
    assert after.told == []
    assert (after.own == 1, after.clean) == (expected.next_time, expected.next_time)
    if not expected.next_time:
        assert after.verdict == seen.verdict
        assert after.failures == seen.failures


def _cell(seen: Seen, plugin: FaultyProfiler, hook: str) -> tuple[object, ...]:
    """Return what was seen in the terms of a cell, when all that holds of every cell has been checked."""
    assert seen.names == OTHERS
    assert seen.in_trace == (None if seen.verdict is None else seen.verdict.as_dict())
    if seen.verdict is None:
        verdict = Verdict.CUT_OFF if seen.told else Verdict.NOTHING
        assert seen.marked == []
    else:
        verdict = {SESSION_ENDS: Verdict.SET_ASIDE, PROCESS_ENDS: Verdict.QUARANTINED}[seen.verdict.until]
        assert seen.verdict.hook.rpartition(".")[2] == hook
        assert seen.prof.report.start_ns - 10**10 < seen.verdict.at_ns < seen.prof.report.end_ns + 10**10
        assert seen.marked == [seen.verdict.mark]
    for text in seen.told:
        assert plugin.label in text
        assert hook in text or verdict is Verdict.CUT_OFF
    assert len(seen.told) <= 1
    assert seen.clean == (not seen.told)
    kept = {0: Kept.NONE, 1: Kept.ALL, LIMIT: Kept.SOME}[seen.own]
    return verdict, kept, bool(seen.told)


def _without_next(cell: Cell) -> tuple[object, ...]:
    verdict = Verdict.NOTHING if cell.verdict is Verdict.WAITED_FOR else cell.verdict
    return verdict, cell.kept, cell.told


def _check_the_rest(faults: Faults, fault: str) -> None:
    if fault == "re-enter":
        assert faults.refused
        assert all("() inside a plugin's " in text for text in faults.refused), faults.refused
        assert {text.partition("(")[0] for text in faults.refused} == {"start", "stop"}
    if fault == "fork":
        assert faults.children
        assert {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in faults.children} == {0}


def test_there_is_a_cell_for_every_hook_of_a_session() -> None:
    known = {*registry.SESSION_RETURNS, "configure"}
    assert set(HOOKS) == known
    assert {hook for hook, _, _ in CELLS} == known
    assert devprof.profile  # the front door of all of these tests
