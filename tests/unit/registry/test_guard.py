"""Whatever a plugin does behind a guard becomes one error, one warning and a default value."""

from __future__ import annotations

import functools
import logging
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from devprof.errors import PluginContractError, PluginError, PluginTimeoutError, PluginWarning
from devprof.registry import Guard, PluginFailure, hook_here
from devprof.registry.guard import MAX_FAILURES
from devprof.registry.returns import SESSION_RETURNS


def _raise(error: BaseException) -> object:
    raise error


def _fail_each(guards: list[Guard], hooks: list[str]) -> None:
    for guard, hook in zip(guards, hooks, strict=True):
        guard.call(hook, _raise, ValueError(hook))


def _said(guard: Guard) -> list[str]:
    return [str(failure.error) for failure in guard.failures]


def test_a_plugin_that_behaves_is_passed_through_without_a_word() -> None:
    seen: list[PluginFailure] = []
    guard = Guard("demo", seen.append)
    assert guard.call("session.errors", lambda a, b: [a, b], "x", "y", expect=list, default=[]) == ["x", "y"]
    assert (guard.failed, guard.failures, guard.failure_count, seen) == (False, [], 0, [])


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3), MemoryError("boom"), GeneratorExit("boom")])
def test_whatever_is_raised_gives_the_default_and_one_warning_that_names_plugin_and_hook(error: BaseException) -> None:
    seen: list[PluginFailure] = []
    guard = Guard("demo", seen.append)
    with pytest.warns(PluginWarning) as caught:
        assert guard.call("session.stop", _raise, error, default="safe") == "safe"
    text = f"plugin 'demo', session.stop: {type(error).__name__}: {error}"
    assert [str(w.message) for w in caught] == [
        f"{text}. It is set aside for the rest of this session; the program and everything else go on."
    ]
    assert (guard.failed, _said(guard), guard.failure_count) == (True, [text], 1)
    assert seen == guard.failures
    assert seen[0].error.__cause__ is error


def test_a_wrong_type_is_a_failure_too_and_says_what_was_expected() -> None:
    guard = Guard("demo")
    with pytest.warns(PluginWarning, match="session.errors: returned str 'oops', expected list"):
        assert guard.call("session.errors", lambda: "oops", expect=list, default=[]) == []
    assert isinstance(guard.failures[0].error, PluginContractError)


def test_an_expectation_of_the_contract_can_be_asked_for() -> None:
    guard = Guard("demo")
    with pytest.warns(PluginWarning, match="returned None, expected a list or tuple of str: is a 'return' missing"):
        guard.call("session.errors", lambda: None, expect=SESSION_RETURNS["errors"], default=[])


def test_later_failures_are_recorded_without_a_further_warning() -> None:
    guard = Guard("demo")
    with pytest.warns(PluginWarning) as caught:
        _fail_each([guard, guard], ["session.start", "session.stop"])
    assert len(caught) == 1
    assert _said(guard) == [
        "plugin 'demo', session.start: ValueError: session.start",
        "plugin 'demo', session.stop: ValueError: session.stop",
    ]


def test_a_call_after_a_failure_still_works() -> None:
    guard = Guard("demo")
    with pytest.warns(PluginWarning):
        guard.call("session.start", _raise, ValueError("one"))
    assert guard.call("session.errors", lambda: 5) == 5


def test_two_guards_warn_each_for_their_own_plugin() -> None:
    with pytest.warns(PluginWarning) as caught:
        _fail_each([Guard("one"), Guard("two"), Guard("two")], ["session.start"] * 3)
    assert [str(w.message)[:12] for w in caught] == ["plugin 'one'", "plugin 'two'", "plugin 'two'"]


def test_the_users_interrupt_on_the_main_thread_passes_through() -> None:
    guard = Guard("demo")
    with pytest.raises(KeyboardInterrupt):
        guard.call("session.stop", _raise, KeyboardInterrupt())
    assert (guard.failed, guard.failures) == (False, [])


def test_an_interrupt_on_another_thread_is_the_plugins_own_doing() -> None:
    guard = Guard("demo")
    with pytest.warns(PluginWarning, match="KeyboardInterrupt"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(guard.call, "session.stop", _raise, KeyboardInterrupt()).result(timeout=10) is None
    assert guard.failed


def _define_at_line(line: int, source: str) -> Callable[..., object]:
    names: dict[str, Callable[..., object]] = {}
    exec(compile("\n" * (line - 1) + source, "their_plugin.py", "exec"), names)
    return names["hook"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def hook():\n    raise ValueError('boom')", 41),
        ("def hook():\n    return 7", 40),
    ],
    ids=["raises", "returns a wrong type"],
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "partial"])
def test_the_warning_points_at_the_plugins_own_line(source: str, line: int, wrapped: bool) -> None:
    hook = _define_at_line(40, source)
    with pytest.warns(PluginWarning) as caught:
        Guard("demo").call("session.errors", functools.partial(hook) if wrapped else hook, expect=list)
    assert [(w.filename, w.lineno) for w in caught] == [("their_plugin.py", line)]


def test_a_function_in_c_has_no_line_to_point_at() -> None:
    with pytest.warns(PluginWarning) as caught:
        Guard("demo").call("session.errors", len, (), expect=list)
    assert [(w.filename, w.lineno) for w in caught] == [("<plugin>", 1)]


def test_where_warnings_are_errors_the_program_goes_on_and_the_log_has_it(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard("demo")
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "devprof.registry"):
        warnings.simplefilter("error")
        assert guard.call("session.stop", _raise, ValueError("boom"), default=0) == 0
    assert [record.message[:44] for record in caplog.records] == ["plugin 'demo', session.stop: ValueError: boo"]


def test_a_failure_found_elsewhere_counts_like_any_other() -> None:
    guard = Guard("demo")
    error = PluginTimeoutError("demo", "session.stop", "no answer for 5 s")
    with pytest.warns(PluginWarning, match="no answer for 5 s"):
        guard.fail(error)
    assert (guard.failed, [f.error for f in guard.failures]) == (True, [error])


def test_a_plugin_that_fails_at_every_op_does_not_fill_the_memory() -> None:
    seen: list[PluginFailure] = []
    guard = Guard("demo", seen.append)
    with pytest.warns(PluginWarning) as caught:
        _fail_each([guard] * (MAX_FAILURES + 50), ["stubs.record"] * (MAX_FAILURES + 50))
    assert (len(caught), len(guard.failures), len(seen)) == (1, MAX_FAILURES, MAX_FAILURES)
    assert guard.failure_count == MAX_FAILURES + 50


def test_eight_threads_failing_at_once_give_one_warning_and_every_failure() -> None:
    guard = Guard("demo")
    gate = threading.Barrier(8)

    def fail(_: int) -> None:
        gate.wait(timeout=30)
        guard.call("stubs.record", _raise, ValueError("boom"))

    with pytest.warns(PluginWarning) as caught, ThreadPoolExecutor(8) as pool:
        list(pool.map(fail, range(8), timeout=60))
    assert (len(caught), len(guard.failures), guard.failure_count) == (1, 8, 8)


def test_the_last_sentence_of_the_warning_can_be_chosen() -> None:
    with pytest.warns(PluginWarning, match=r"ValueError: boom\. It is left out\.$"):
        Guard("demo", consequence="It is left out.").call("entry point", _raise, ValueError("boom"))


def test_a_plugin_error_raised_by_the_plugin_itself_is_kept() -> None:
    guard = Guard("demo")
    error = PluginError("demo", "session.stop", "the driver is gone")
    with pytest.warns(PluginWarning):
        guard.call("session.stop", _raise, error)
    assert guard.failures[0].error is error


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(("then", "status"), [(lambda: None, 0), (lambda: _raise(ValueError("in the child")), 1)])
def test_a_child_that_a_hook_forks_ends_where_the_hook_does(then: Callable[[], object], status: int) -> None:
    children: list[int] = []

    def hook() -> object:
        if (child := os.fork()) == 0:
            return then()
        children.append(child)
        return "from the parent"

    guard = Guard("demo")
    before = os.getpid()
    assert guard.call("start", hook) == "from the parent"
    assert os.getpid() == before
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == status
    assert not guard.failed


def test_a_thread_knows_which_hook_it_is_in() -> None:
    guard = Guard("demo")
    seen: list[str] = []

    def inner() -> None:
        seen.append(hook_here())
        raise ValueError("inner")

    def outer() -> None:
        guard.call("session.status", inner)
        seen.append(hook_here())
        other = threading.Thread(target=lambda: seen.append(hook_here()))
        other.start()
        other.join()

    guard.call("session.stop", outer)
    seen.append(hook_here())
    assert seen == ["session.status", "session.stop", "", ""]
