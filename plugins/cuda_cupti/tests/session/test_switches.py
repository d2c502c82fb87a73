"""What a capture switches in CUPTI for the whole process: in which order, back again, and never for another profiler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from cuda_cupti import profiler as module
from cuda_cupti.capture import Client
from cuda_cupti.coexistence import KINETO, may_be_taken_over
from cuda_cupti.errors import CudaUnavailableError
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.profiler import CudaProfiler

from devprof.contract import SessionConfig
from devprof.model import ActivityType

K = ActivityKind
KERNEL, SYNC, OVERHEAD = ActivityType.CONCURRENT_KERNEL, ActivityType.CUDA_SYNC, ActivityType.OVERHEAD
NOISE = {K.RUNTIME: {17, 16, 10, 133, 134, 136}, K.DRIVER: {686, 392, 304}}
ENABLE, DISABLE, FLUSH = "cuptiActivityEnable", "cuptiActivityDisable", "cuptiActivityFlushAll"


def test_noise_is_muted_after_the_start_and_again_after_a_pause(stand_in: Any, configure: Callable[..., Any]) -> None:
    session = configure()
    session.start()
    muted = {kind: set(cbids) for kind, cbids in stand_in.muted.items()}
    session.toggle_collection_dynamic(False)
    session.toggle_collection_dynamic(True)
    assert (muted, stand_in.muted) == (NOISE, NOISE)
    session.stop()


def test_waits_come_all_and_events_with_the_devices_time_which_is_switched_off_again(
    stand_in: Any, configure: Callable[..., Any]
) -> None:
    session, times = configure(SYNC), "cuptiActivityEnableCudaEventDeviceTimestamps"
    session.start()
    log = list(stand_in.log)
    assert log.index((ENABLE, K.SYNCHRONIZATION)) < log.index(("cuptiActivityEnableAllSyncRecords", 1))
    assert log.index((ENABLE, K.CUDA_EVENT)) < log.index((times, 1))
    session.stop()
    assert [on for name, on in stand_in.log if name == times] == [1, 0]


def test_the_functions_for_buffers_are_registered_before_the_first_kind_is_on(
    stand_in: Any, configure: Callable[..., Any]
) -> None:
    session = configure()
    session.start()
    names = [name for name, _ in stand_in.log]
    assert names.index("cuptiActivityRegisterCallbacks") < names.index(ENABLE)
    assert FLUSH not in names  # nothing is out
    session.stop()


def test_buffers_that_cupti_has_from_before_are_asked_for_before_the_first_kind_is_on(
    stand_in: Any, configure: Callable[..., Any], client: Client
) -> None:
    client.exchange.begin()
    stand_in._cuptiActivityRegisterCallbacks(client.exchange.requested, client.exchange.completed)
    stand_in.raw(b"\xff" * 8)
    client.exchange.end()
    stand_in.log.clear()
    session = configure()
    session.start()
    names = [name for name, _ in stand_in.log]
    order = [names.index(name) for name in ("cuptiActivityRegisterCallbacks", FLUSH, ENABLE)]
    assert (order, client.exchange.outstanding(client.exchange.loans)) == (sorted(order), 0)
    assert stand_in.log[order[1]] == (FLUSH, 1)
    session.stop()


@pytest.mark.parametrize("code", [35, 39, 40])
@pytest.mark.parametrize("kind", [K.MEMCPY, K.OVERHEAD])
def test_who_may_not_profile_is_told_so_whichever_kind_says_it(
    stand_in: Any, configure: Callable[..., Any], kind: ActivityKind, code: int
) -> None:
    stand_in.fail[ENABLE, kind] = code
    session = configure()
    with pytest.raises(CudaUnavailableError, match=rf"cuptiActivityEnable\({kind.name}\) answered {code}"):
        session.start()
    assert stand_in.enabled == set()


@pytest.mark.parametrize(("host", "recorded"), [("python", True), ("torch", False)])
def test_memory_is_torchs_to_report_in_its_own_sessions(profiler: CudaProfiler, host: Any, recorded: bool) -> None:
    session = profiler.configure({KERNEL}, SessionConfig(host=host, profile_memory=True))
    assert session is not None
    assert (K.MEMORY2 in session._capture.kinds) is recorded


# -- beside others ----------------------------------------------------------------------------------------------------


def _torch(*, records: bool) -> Any:
    autograd = SimpleNamespace(_profiler_enabled=lambda: records)
    return SimpleNamespace(version=SimpleNamespace(cuda="13.0"), autograd=autograd)


@pytest.mark.usefixtures("without_frameworks")
@pytest.mark.parametrize(
    ("name", "module", "expected"),
    [
        ("torch", _torch(records=False), True),
        ("torch", SimpleNamespace(version=SimpleNamespace(cuda=None)), False),
        ("jax", SimpleNamespace(), True),
        ("triton", SimpleNamespace(), True),
        ("numpy", SimpleNamespace(), False),
    ],
)
def test_where_another_profiler_may_begin_buffers_are_cleared_by_cupti_as_before(
    stand_in: Any,
    configure: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    module: Any,
    expected: bool,
) -> None:
    session = configure()
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, name, module)
        assert may_be_taken_over() is expected
        session.start()
    assert stand_in.attributes[5] == (not expected)
    session.stop()
    set_ones = [attribute for function, attribute in stand_in.log if function == "cuptiActivitySetAttribute"]
    assert (set_ones, stand_in.attributes[5]) == ([] if expected else [5, 5], 0)


def test_a_pause_switches_nothing_for_a_profiler_that_took_over(stand_in: Any, configure: Callable[..., Any]) -> None:
    session, other = configure(), [""]
    session._capture.taken_over_by = lambda: other[0]
    session.start()
    on, other[0] = set(stand_in.enabled), KINETO
    stand_in.log.clear()
    for enabled in (False, True):
        session.toggle_collection_dynamic(enabled)
    assert (stand_in.enabled, stand_in.log) == (on, [])
    session.stop()
    (error,) = session.errors()
    assert error.startswith(f"{KINETO} began while CUDA was recorded")


def test_kinds_that_were_left_to_another_profiler_are_switched_off_by_the_next_capture(
    stand_in: Any, configure: Callable[..., Any], client: Client
) -> None:
    session = configure(KERNEL)
    session._capture.taken_over_by = lambda: "another"
    session.start()
    session.stop()
    assert (K.CONCURRENT_KERNEL in stand_in.enabled, K.CONCURRENT_KERNEL in client.left_on) == (True, True)
    session = configure(OVERHEAD)
    session.start()
    session.stop()
    assert (stand_in.enabled, client.left_on, session.errors()) == (set(), [], [])


@pytest.mark.parametrize(("other", "off"), [(KINETO, {K.MEMORY2}), ("jax.profiler", set())])
def test_memory_is_no_kind_of_kinetos_and_goes_off_where_it_took_over_and_nothing_beside_others(
    stand_in: Any, profiler: CudaProfiler, other: str, off: set[ActivityKind]
) -> None:
    session = profiler.configure({OVERHEAD}, SessionConfig(host="python", profile_memory=True))
    assert session is not None
    session._capture.taken_over_by = lambda: other
    session.start()
    on = set(stand_in.enabled)
    session.stop()
    assert on - stand_in.enabled == off


# -- whether a tool is there, and the end of the interpreter ------------------------------------------------------------


@pytest.fixture
def opened(client: Client, monkeypatch: pytest.MonkeyPatch, without_frameworks: None) -> list[tuple[Any, ...]]:
    """Have the plugin open the stand-in, and return what it registers for the end of the interpreter."""
    registered: list[tuple[Any, ...]] = []
    monkeypatch.setattr(module, "open_cupti", lambda: client.access)
    monkeypatch.setattr(module, "_client", lambda access: client)
    monkeypatch.setattr(module, "_leave_at_exit", module._leave_at_exit.__wrapped__)
    monkeypatch.setattr(module.atexit, "register", lambda *call: registered.append(call))
    return registered


def _asked(stand_in: Any) -> int:
    asked: int = stand_in.calls["cuptiSubscribe"]
    return asked


def test_while_a_capture_records_nobody_subscribes_and_another_can_be_prepared(stand_in: Any, opened: Any) -> None:
    plugin = CudaProfiler()
    first = plugin.configure({KERNEL}, SessionConfig(host="python"))
    assert first is not None
    first.start()
    assert _asked(stand_in) == 1
    second = plugin.configure({KERNEL}, SessionConfig(host="python"))
    assert (second is not None, _asked(stand_in)) == (True, 1)
    first.stop()
    plugin.configure({KERNEL}, SessionConfig(host="python"))
    assert (_asked(stand_in), stand_in.subscriber) == (2, 0)


def test_a_kind_that_stays_on_is_not_taken_for_another_tools(stand_in: Any, opened: Any) -> None:
    plugin = CudaProfiler()
    for _ in range(2):
        stand_in.fail[DISABLE, K.CONCURRENT_KERNEL] = 1
        session = plugin.configure({KERNEL}, SessionConfig(host="python"))
        assert session is not None
        session.start()
        session.stop()
    assert (stand_in.enabled, _asked(stand_in)) == ({K.CONCURRENT_KERNEL}, 1)
    stand_in.fail.clear()
    session.start()
    session.stop()
    plugin.configure({KERNEL}, SessionConfig(host="python"))
    assert (stand_in.enabled, _asked(stand_in)) == (set(), 2)


def test_where_a_tool_holds_cupti_nothing_is_done_at_the_end_of_the_interpreter(stand_in: Any, opened: Any) -> None:
    stand_in.subscriber = 1
    with pytest.raises(CudaUnavailableError, match="Another profiler holds CUPTI"):
        CudaProfiler().configure({KERNEL}, SessionConfig(host="python"))
    assert opened == []


def test_at_the_end_of_the_interpreter_everything_goes_off_and_cupti_gives_its_buffers_back(
    stand_in: Any, opened: Any, client: Client
) -> None:
    session = CudaProfiler().configure({KERNEL}, SessionConfig(host="python"))
    assert session is not None
    session.start()
    stand_in.kernel()
    ((leave, *arguments),) = opened
    leave(*arguments)
    assert (stand_in.enabled, client.exchange.outstanding(client.exchange.loans)) == (set(), 0)
    log = [call for call in stand_in.log if call[0] in (DISABLE, FLUSH)]
    assert log[-1] == (FLUSH, 1)
    session.stop()


def test_at_the_end_of_the_interpreter_another_profiler_that_records_keeps_its_kinds_and_buffers(
    stand_in: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = CudaProfiler()
    session = plugin.configure({KERNEL}, SessionConfig(host="python", profile_memory=True))
    assert session is not None
    session.start()
    on = set(stand_in.enabled)
    monkeypatch.setitem(sys.modules, "torch", _torch(records=True))
    ((leave, *arguments),) = opened
    leave(*arguments)
    assert (on - stand_in.enabled, stand_in.calls[FLUSH]) == ({K.MEMORY2}, 0)
    session.stop()


def test_a_forked_child_leaves_its_parents_cupti_alone(stand_in: Any, client: Client) -> None:
    client._process += 1
    before = stand_in.calls.total()
    module._leave(client)
    assert stand_in.calls.total() == before


def test_a_process_has_one_client_per_library_and_one_word_at_its_end(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[tuple[Any, ...]] = []
    monkeypatch.setattr(module.atexit, "register", lambda *call: registered.append(call))
    opened = stand_in.access()
    for _ in range(2):
        module._leave_at_exit(module._client(opened))
    assert registered == [(module._leave, module._client(opened))]
