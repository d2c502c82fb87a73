"""The catalogue asks each plugin once, in the order of names, and no plugin's failure hides another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devprof.contract import NativeBuild
from devprof.errors import PluginContractError, PluginWarning, UsageError
from devprof.registry import Catalogue, PluginInfo
from tests.unit.registry.plugins import OneHook, Plugin, Profiler, Stubs


def _catalogue(*, blocked: tuple[str, ...] = (), **plugins: object) -> Catalogue:
    catalogue = Catalogue(blocked)
    for name, plugin in plugins.items():
        catalogue.add_object(PluginInfo(name), plugin)
    return catalogue


def _names(catalogue: Catalogue) -> list[tuple[str, str]]:
    return [(one.plugin.name, one.name) for one in catalogue.profilers]


def _failures(catalogue: Catalogue) -> list[str]:
    return [str(failure.error) for failure in catalogue.failures]


def _raise(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


def test_profilers_come_in_the_order_of_plugin_names_whatever_the_order_of_registration() -> None:
    catalogue = _catalogue(zeta=OneHook(Profiler("z2"), Profiler("z1")), alpha=OneHook(Profiler("a")))
    assert _names(catalogue) == [("alpha", "a"), ("zeta", "z2"), ("zeta", "z1")]
    assert catalogue.plugins == (PluginInfo("alpha"), PluginInfo("zeta"))


def test_a_hook_is_called_once_and_not_before_it_is_needed() -> None:
    plugin = Plugin([Profiler("one")])
    catalogue = _catalogue(demo=plugin)
    assert plugin.calls == []
    assert catalogue.profilers is not None
    assert (catalogue.profilers, plugin.calls) == (catalogue.profilers, ["profilers"])
    assert (catalogue.stubs, catalogue.stubs, plugin.calls) == ((), (), ["profilers", "stubs"])
    assert (catalogue.native_builds, plugin.calls) == ((), ["profilers", "stubs", "builds"])


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(2), ImportError("no driver")])
def test_a_hook_that_raises_is_recorded_with_its_traceback_and_the_others_are_there(error: BaseException) -> None:
    catalogue = _catalogue(a=Plugin([Profiler("a")]), b=Plugin(_raise(error)), c=Plugin([Profiler("c")]))
    with pytest.warns(PluginWarning) as caught:
        assert _names(catalogue) == [("a", "a"), ("c", "c")]
    text = f"plugin 'b', devprof_activity_profilers: {type(error).__name__}: {error}"
    assert [str(w.message) for w in caught] == [
        f"{text}. It is left out; everything else goes on. 'devprof plugins -v' shows the traceback."
    ]
    assert _failures(catalogue) == [text]
    assert "in fail" in catalogue.failures[0].traceback


def test_a_complaint_that_ends_in_a_question_gets_no_full_stop_behind_it() -> None:
    asked = ValueError("did you mean 'openreg'?")
    with pytest.warns(PluginWarning) as caught:
        assert _names(_catalogue(b=Plugin(_raise(asked)))) == []
    text = "plugin 'b', devprof_activity_profilers: ValueError: did you mean 'openreg'?"
    assert [str(w.message) for w in caught] == [
        f"{text} It is left out; everything else goes on. 'devprof plugins -v' shows the traceback."
    ]


def test_one_wrong_profiler_does_not_take_its_neighbour_along() -> None:
    catalogue = _catalogue(demo=OneHook(object(), Profiler("good")))
    with pytest.warns(PluginWarning, match="is not an IActivityProfiler"):
        assert _names(catalogue) == [("demo", "good")]


def test_a_plugin_whose_profilers_fail_still_brings_its_stubs() -> None:
    catalogue = _catalogue(demo=Plugin(_raise(ValueError("boom")), Stubs("npu")))
    with pytest.warns(PluginWarning):
        assert catalogue.profilers == ()
    assert [(one.name, one.torch_device) for one in catalogue.stubs] == [("demo", "npu")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "returned None, expected a list of profilers: is a 'return' missing?"),
        (Profiler("x"), "expected a list of profilers: put it in a list, even a single one"),
        ("text", "returned str 'text', expected a list of profilers"),
    ],
)
def test_an_answer_that_is_no_list_is_refused(answer: Any, message: str) -> None:
    catalogue = _catalogue(demo=Plugin(answer))
    with pytest.warns(PluginWarning):
        assert catalogue.profilers == ()
    assert message in _failures(catalogue)[0]
    assert isinstance(catalogue.failures[0].error, PluginContractError)


def test_of_two_profilers_with_one_name_the_first_stays_and_the_second_is_told() -> None:
    catalogue = _catalogue(a=OneHook(Profiler("sim")), b=OneHook(Profiler("sim"), Profiler("b")))
    with pytest.warns(PluginWarning):
        assert _names(catalogue) == [("a", "sim"), ("b", "b")]
    (failure,) = catalogue.failures
    assert (failure.name, failure.hook, failure.error.reason) == (
        "b",
        "devprof_activity_profilers",
        "profiler 'sim' is registered already by plugin 'a'; names must be unique, choose another",
    )


def test_one_plugin_may_not_use_a_name_twice_either() -> None:
    catalogue = _catalogue(a=OneHook(Profiler("sim"), Profiler("sim")))
    with pytest.warns(PluginWarning, match="profiler 'sim' is registered already by plugin 'a'"):
        assert _names(catalogue) == [("a", "sim")]


def test_of_two_stubs_for_one_device_the_first_stays() -> None:
    first, second = Stubs("npu"), Stubs("npu")
    catalogue = _catalogue(a=Plugin(stubs=first), b=Plugin(stubs=second))
    with pytest.warns(PluginWarning, match="stubs for torch device 'npu' is registered already by plugin 'a'"):
        assert [one.stubs for one in catalogue.stubs] == [first]


def test_native_builds_of_all_plugins_are_listed(tmp_path: Path) -> None:
    one, two = (NativeBuild(name, (tmp_path / "x.cpp",)) for name in ("one", "two"))
    catalogue = _catalogue(b=Plugin(builds=[two, "wrong"]), a=Plugin(builds=[one]))
    with pytest.warns(PluginWarning, match="returned str 'wrong', expected NativeBuild"):
        assert catalogue.native_builds == (one, two)


def test_what_plugins_say_to_the_doctor_comes_with_their_names_a_line_each() -> None:
    catalogue = _catalogue(b=Plugin(lines=["driver: 580\n  is fine", 5]), a=Plugin(lines=["nothing here"]))
    with pytest.warns(PluginWarning, match="a line is int 5, expected text"):
        assert catalogue.doctor_lines == (("a", "nothing here"), ("b", "driver: 580 is fine"))


def test_a_plugin_that_asks_for_the_catalogue_in_its_own_hook_sees_what_is_there_so_far() -> None:
    seen: list[object] = []
    catalogue = _catalogue(a=OneHook(Profiler("a")))

    def ask() -> list[object]:
        seen.append(_names(catalogue))
        return [Profiler("b")]

    catalogue.add_object(PluginInfo("b"), Plugin(ask))
    assert _names(catalogue) == [("a", "a"), ("b", "b")]
    assert seen == [[("a", "a")]]


def test_the_users_interrupt_in_a_hook_is_not_the_plugins_failure() -> None:
    catalogue = _catalogue(demo=Plugin(_raise(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        _ = catalogue.profilers
    assert catalogue.failures == ()


def test_loading_that_fails_is_recorded_and_not_raised() -> None:
    catalogue = _catalogue(a=OneHook(Profiler("a")))
    with pytest.warns(PluginWarning, match="plugin 'b', entry point: OSError: libdevice.so: cannot open"):
        assert catalogue.add(PluginInfo("b"), _raise(OSError("libdevice.so: cannot open"))) is False
    assert catalogue.add(PluginInfo("c"), lambda: OneHook(Profiler("c"))) is True
    assert _names(catalogue) == [("a", "a"), ("c", "c")]
    assert [(failure.name, failure.hook) for failure in catalogue.failures] == [("b", "entry point")]


def test_registering_an_object_that_does_not_fit_is_told_to_the_caller_at_once() -> None:
    catalogue = Catalogue()
    with pytest.raises(PluginContractError, match="plugin 'demo', registration: it implements no hook"):
        catalogue.add_object(PluginInfo("demo"), object())
    assert (catalogue.plugins, catalogue.failures) == ((), ())


def test_a_name_can_be_registered_once() -> None:
    catalogue = _catalogue(demo=OneHook())
    with pytest.raises(UsageError, match="a plugin named 'demo' is registered already; unregister it first"):
        catalogue.add_object(PluginInfo("demo"), OneHook())


def test_a_plugin_that_is_taken_out_frees_its_names_and_takes_its_failures_along() -> None:
    catalogue = _catalogue(a=OneHook(Profiler("sim"), object()), b=OneHook(Profiler("other")))
    with pytest.warns(PluginWarning):
        assert _names(catalogue) == [("a", "sim"), ("b", "other")]
    catalogue.remove("a")
    assert (_names(catalogue), catalogue.failures) == ([("b", "other")], ())
    catalogue.add_object(PluginInfo("c"), OneHook(Profiler("sim")))
    assert _names(catalogue) == [("b", "other"), ("c", "sim")]


def test_taking_out_what_is_not_there_lists_what_is() -> None:
    with pytest.raises(UsageError, match="no plugin named 'x' is registered; registered are 'a', 'b'"):
        _catalogue(b=OneHook(), a=OneHook()).remove("x")


def test_blocked_plugins_and_profilers_are_left_out_and_listed() -> None:
    plugin = Plugin([Profiler("x")])
    catalogue = _catalogue(blocked=("a", "b2", "never seen"), a=plugin, b=OneHook(Profiler("b1"), Profiler("b2")))
    assert (_names(catalogue), catalogue.blocked, catalogue.failures) == ([("b", "b1")], ("a", "b2"), ())
    assert plugin.calls == []


@pytest.fixture
def three() -> Catalogue:
    return _catalogue(
        dist_a=OneHook(Profiler("npu_sim", "npu")),
        dist_b=OneHook(Profiler("npu_power", "npu"), Profiler("host_power")),
        dist_c=OneHook(Profiler("tpu_sim", "tpu")),
    )


@pytest.mark.parametrize(
    ("device", "names", "chosen"),
    [
        (None, (), []),
        ("npu", (), ["npu_sim", "npu_power"]),
        ("tpu", (), ["tpu_sim"]),
        ("other", (), []),
        (None, ("host_power",), ["host_power"]),
        ("tpu", ("host_power",), ["host_power", "tpu_sim"]),
        ("npu", ("npu_sim", "npu_sim"), ["npu_sim", "npu_power"]),
        (None, ("dist_b",), ["npu_power", "host_power"]),
        (None, (" tpu_sim ", ""), ["tpu_sim"]),
    ],
)
def test_a_session_gets_its_backends_profilers_and_those_named(
    three: Catalogue, device: str | None, names: tuple[str, ...], chosen: list[str]
) -> None:
    assert [one.name for one in three.profilers_for(device, names)] == chosen


def test_an_unknown_name_lists_the_known_ones(three: Catalogue) -> None:
    known = "'host_power', 'npu_power', 'npu_sim', 'tpu_sim'"
    with pytest.raises(UsageError, match=f"^no profiler named 'gpu', 'xpu'; known are {known}$"):
        three.profilers_for("npu", ["xpu", "gpu"])


def test_a_name_whose_plugin_failed_says_why() -> None:
    catalogue = Catalogue(blocked=["quiet"])
    with pytest.warns(PluginWarning):
        catalogue.add(PluginInfo("broken"), _raise(ImportError("no driver")))
    catalogue.add(PluginInfo("quiet"), lambda: OneHook(Profiler("quiet")))
    with pytest.raises(UsageError) as caught:
        catalogue.profilers_for(None, ["broken", "quiet"])
    assert str(caught.value) == (
        "no profiler named 'broken', 'quiet' (plugin 'broken', entry point: ImportError: no driver; "
        "'quiet' is blocked by DEVPROF_BLOCK_PLUGINS); known are none"
    )


def test_a_text_in_place_of_a_list_of_names_is_refused(three: Catalogue) -> None:
    with pytest.raises(UsageError, match=r"must be a list of names, found the text 'npu_sim'; write \['npu_sim'\]"):
        three.profilers_for(None, "npu_sim")
