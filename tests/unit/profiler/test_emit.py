"""`emit_nvtx` and `emit_itt`: what the libraries are told, and what becomes of ranges that are no stack."""

from __future__ import annotations

import contextlib
import sys
import threading
from types import ModuleType
from typing import Any

import pytest

from devprof.errors import SessionError, UsageError
from devprof.host import RecordFunction, record_function
from devprof.profiler.emit import emit_itt, emit_nvtx


class Tensor:
    """Something with sizes."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.dtype = "float32"


class Listener:
    """A stand-in for a library, at its functions: a list of what each thread pushed and popped."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.depth = 0

    def push(self, text: str) -> None:
        self.depth += 1
        self.told.append(f"+{text}")

    def pop(self) -> None:
        self.depth -= 1
        assert self.depth >= 0, "popped more than was pushed"
        self.told.append("-")


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    """Both libraries replaced by one listener."""
    heard = Listener()
    nvtx, ittapi = ModuleType("nvtx"), ModuleType("ittapi")
    nvtx.push_range, nvtx.pop_range = heard.push, heard.pop  # type: ignore[attr-defined]
    library: Any = ittapi
    library.domain = lambda name: f"<{name}>"
    library.string_handle = lambda text: text

    def begin(domain: str, handle: str) -> None:
        assert domain == "<devprof>"
        heard.push(handle)

    def end(domain: str) -> None:
        assert domain == "<devprof>"
        heard.pop()

    library.task_begin, library.task_end = begin, end
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    monkeypatch.setitem(sys.modules, "ittapi", ittapi)
    return heard


def work() -> None:
    with record_function("step"), RecordFunction("aten::mm", sequence_nr=7, inputs=(Tensor(2, 3), 4.0, Tensor())):
        pass


def test_ranges_reach_nvtx_with_their_sequence_numbers(listener: Listener) -> None:
    with emit_nvtx():
        work()
    work()
    assert listener.told == ["+step", "+aten::mm, seq = 7", "-", "-"]


def test_sizes_are_added_when_they_are_asked_for(listener: Listener) -> None:
    with emit_nvtx(record_shapes=True):
        work()
    assert listener.told == ["+step", "+aten::mm, seq = 7, sizes = [[2, 3], [], []]", "-", "-"]


def test_tasks_of_itt_are_named_without_the_sequence_number(listener: Listener) -> None:
    with emit_itt(record_shapes=True):
        work()
    assert listener.told == ["+step", "+aten::mm, sizes = [[2, 3], [], []]", "-", "-"]


def test_text_that_no_c_string_holds_is_cleaned(listener: Listener) -> None:
    with emit_nvtx(), record_function("a\0b\ud800é"):
        pass
    assert listener.told == ["+a b?é", "-"]


@pytest.mark.parametrize("emitter", [emit_nvtx, emit_itt])
def test_one_that_is_not_enabled_needs_no_library(emitter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setitem(sys.modules, "ittapi", None)
    with emitter(enabled=False):
        work()


@pytest.mark.parametrize(("emitter", "package"), [(emit_nvtx, "nvtx"), (emit_itt, "ittapi")])
def test_a_library_that_is_missing_is_named(emitter: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"{emitter.__name__} needs the package {package}.*: pip install {package}"):
        emitter().__enter__()


def test_only_one_is_enabled_at_a_time_and_the_first_goes_on(listener: Listener) -> None:
    with emit_nvtx() as first:
        for again in (first, emit_nvtx()):
            with pytest.raises(SessionError, match="emit_nvtx is enabled already"):
                again.__enter__()
        with emit_itt():
            work()
    assert listener.told == ["+step", "+step", "+aten::mm, seq = 7", "+aten::mm", "-", "-", "-", "-"]
    with first:
        work()
    assert listener.told[8:] == ["+step", "+aten::mm, seq = 7", "-", "-"]


def test_interleaved_ranges_keep_the_librarys_stack_balanced(listener: Listener) -> None:
    one, two = record_function("one"), record_function("two")
    with emit_nvtx():
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        with record_function("inside two"):
            pass
        two.__exit__(None, None, None)
    assert listener.told == ["+one", "+two", "-", "-", "+two", "+inside two", "-", "-"]


def test_a_range_that_ends_on_another_thread_is_popped_on_its_own(listener: Listener) -> None:
    range_ = record_function("elsewhere")
    with emit_nvtx():
        range_.__enter__()
        thread = threading.Thread(target=range_.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        assert listener.told == ["+elsewhere"]
        work()
    assert listener.told == ["+elsewhere", "-", "+step", "+aten::mm, seq = 7", "-", "-"]


def test_ranges_that_are_open_at_the_end_are_popped_and_those_from_before_are_left_alone(listener: Listener) -> None:
    before = record_function("before")
    before.__enter__()
    emitter = emit_nvtx()
    emitter.__enter__()
    inside = record_function("inside")
    inside.__enter__()
    emitter.__exit__(None, None, None)
    inside.__exit__(None, None, None)
    before.__exit__(None, None, None)
    assert listener.told == ["+inside", "-"]


def test_an_exception_passes_through_and_the_stack_is_empty_after_it(listener: Listener) -> None:
    with contextlib.suppress(KeyError), emit_nvtx(), record_function("step"):
        raise KeyError
    assert listener.told == ["+step", "-"]


@pytest.mark.parametrize(("emitter", "package"), [(emit_nvtx, "nvtx"), (emit_itt, "ittapi")])
def test_the_real_library_takes_ranges_when_no_tool_listens(emitter: Any, package: str) -> None:
    pytest.importorskip(package, reason=f"the package {package} is not installed")
    with emitter(record_shapes=True):
        work()
    with emitter():
        work()
