"""A failure keeps what the plugin raised and the text of where, and nothing of the plugin's frames."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from devprof.errors import PluginContractError, PluginError, PluginWarning
from devprof.registry import Guard
from devprof.registry.failures import PluginFailure, as_plugin_error, failure_of, must_propagate


class Data:
    """Something big that a plugin holds in a local variable."""


def _raised(error: BaseException, data: object = None) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - the test's own
        return caught


def test_what_a_plugin_raised_becomes_the_cause_of_one_plugin_error() -> None:
    cause = _raised(ValueError("boom"))
    failure = failure_of("demo", "session.stop", cause)
    assert (failure.name, failure.hook, str(failure.error)) == (
        "demo",
        "session.stop",
        "plugin 'demo', session.stop: ValueError: boom",
    )
    assert failure.error.__cause__ is cause
    assert failure.traceback.startswith("Traceback (most recent call last):")
    assert failure.traceback.endswith("ValueError: boom\n")


def test_a_plugin_error_stays_as_it_is_with_its_own_hook() -> None:
    error = PluginContractError("demo", "profiler.name", "returned None")
    assert failure_of("demo", "devprof_activity_profilers", error) == PluginFailure(
        "demo",
        "profiler.name",
        error,
        "devprof.errors.PluginContractError: plugin 'demo', profiler.name: returned None\n",
    )


def test_the_traceback_of_a_cause_is_part_of_the_text() -> None:
    error = as_plugin_error("demo", "profiler.name", _raised(KeyError("missing")))
    text = failure_of("demo", "profiler.name", error).traceback
    assert "in _raised" in text
    assert "KeyError: 'missing'" in text


def test_a_failure_does_not_keep_the_plugins_data_alive() -> None:
    def fail() -> tuple[BaseException, weakref.ref[Data]]:
        data = Data()
        try:
            try:
                raise OSError("first")
            except OSError as inner:
                raise ExceptionGroup("second", [ValueError("part"), _raised(TypeError("x"), data)]) from inner
        except ExceptionGroup as outer:
            return outer, weakref.ref(data)

    gc.disable()
    try:
        error, data = fail()
        failure = failure_of("demo", "session.start", error)
        assert data() is None
    finally:
        gc.enable()
    assert "OSError: first" in failure.traceback


def test_an_exception_whose_message_cannot_be_read_is_reported_all_the_same() -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    failure = failure_of("demo", "session.stop", _raised(Unreadable()))
    assert failure.error.reason.endswith("Unreadable: (its message cannot be read: RuntimeError)")


def test_a_message_of_a_megabyte_is_cut() -> None:
    failure = failure_of("demo", "session.stop", ValueError("x" * 1_000_000))
    assert failure.error.reason == f"ValueError: {'x' * 500}..."


@pytest.mark.parametrize(
    ("error", "here", "elsewhere"),
    [
        (KeyboardInterrupt(), True, False),
        (SystemExit(3), False, False),
        (GeneratorExit(), False, False),
        (PluginError("demo", "hook", "text"), False, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_only_an_interrupt_on_the_main_thread_is_the_users(error: BaseException, here: bool, elsewhere: bool) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert (must_propagate(error), pool.submit(must_propagate, error).result(timeout=10)) == (here, elsewhere)


class _NoAttributes(Exception):
    def __setattr__(self, name: str, value: object) -> None:
        raise RuntimeError("frozen")


class _NoLooking(Exception):
    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(f"no {name}")


class _NoClass(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("no class")


class _NoCause(Exception):
    @property
    def __cause__(self) -> BaseException:  # type: ignore[override]
        raise RuntimeError("no cause")


class _ExitText(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class _HalfPluginError(PluginError):
    def __init__(self) -> None:
        Exception.__init__(self, "half")


def _odd_syntax_error() -> SyntaxError:
    error = SyntaxError("odd")
    error.text = 5  # type: ignore[assignment]
    error.lineno, error.offset, error.filename = 1, 1, "f"
    return error


# made inside the test: pytest itself looks at its parameters
_DEFENSIVE = {
    "_NoAttributes": lambda: _NoAttributes("x"),
    "_NoLooking": lambda: _NoLooking("x"),
    "_NoClass": lambda: _NoClass("x"),
    "_NoCause": lambda: _NoCause("x"),
    "_ExitText": lambda: _ExitText("x"),
    "_HalfPluginError": _HalfPluginError,
    "SyntaxError": _odd_syntax_error,
    "ExceptionGroup": lambda: ExceptionGroup("group", [_NoAttributes("x"), _NoLooking("y")]),
}


@pytest.mark.parametrize("name", _DEFENSIVE)
def test_an_exception_that_defends_itself_still_becomes_one_failure_with_one_warning(name: str) -> None:
    """Describing a plugin's exception runs the plugin's code again; nothing of it may reach the host."""

    def hook() -> None:
        raise _DEFENSIVE[name]()

    guard = Guard("odd")
    with pytest.warns(PluginWarning, match=f"plugin 'odd', session.stop: .*{name}"):
        assert guard.call("session.stop", hook, default=7) == 7
    assert (guard.failed, guard.failure_count) == (True, 1)
    assert guard.failures[0].error.hook == "session.stop"
