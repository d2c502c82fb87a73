"""An object that does not fit the contract is refused with a sentence that its author can act on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devprof.contract import CONTRACT_VERSION, Capabilities, NativeBuild
from devprof.errors import PluginContractError, PluginError
from devprof.model import ActivityType
from devprof.registry import ProfilerFacts, validate_build, validate_profiler, validate_session, validate_stubs
from devprof.registry.returns import describe
from tests.unit.registry.plugins import KERNELS, Profiler, Session, Stubs

MAJOR, MINOR = CONTRACT_VERSION


def _refused(check: Callable[[str, object], object], obj: object) -> tuple[str, str]:
    with pytest.raises(PluginContractError) as caught:
        check("demo", obj)
    assert caught.value.plugin == "demo"
    return caught.value.hook, caught.value.reason


def _without(cls: type, *names: str) -> Any:
    members = {key: value for key, value in vars(cls).items() if key not in (*names, "__dict__", "__weakref__")}
    return type(cls.__name__, (), members)()


def _with(cls: type, **members: Any) -> Any:
    return type(cls.__name__, (cls,), members)()


def test_a_profiler_that_fits_is_asked_once_for_what_it_is() -> None:
    asked: list[str] = []

    class Counting(Profiler):
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            return (
                (lambda *a, **k: (asked.append(name), value(*a, **k))[1]) if name in ("name", "capabilities") else value
            )

    assert validate_profiler("demo", Counting("sim", "npu")) == ProfilerFacts(
        "sim", Capabilities(torch_device="npu"), KERNELS
    )
    assert asked == ["name", "capabilities"]


def test_a_missing_method_is_named_with_what_the_object_should_be() -> None:
    hook, reason = _refused(validate_profiler, _without(Profiler, "configure", "capabilities"))
    assert hook == "devprof_activity_profilers"
    assert reason.endswith("is not an IActivityProfiler: it has no capabilities or configure")


def test_a_class_in_place_of_an_instance_is_seen() -> None:
    assert _refused(validate_profiler, Profiler) == (
        "devprof_activity_profilers",
        "gave the class Profiler, expected an IActivityProfiler: make an instance of it",
    )


async def _async(self: object) -> None: ...


def _generator(self: object) -> Any:
    yield


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (7, "is int 7, expected a method"),
        (_async, "is async and nobody would await it; write a plain function"),
        (_generator, "has a 'yield', so calling it would not run its body; write a plain function"),
    ],
)
def test_a_method_that_cannot_be_called_plainly_is_refused(method: object, problem: str) -> None:
    hook, reason = _refused(validate_session, _with(Session, stop=method))
    assert hook == "profiler.configure"
    assert reason.startswith("method 'stop' of ")
    assert reason.endswith(problem)


def test_a_wrong_signature_is_shown_beside_the_call() -> None:
    _, reason = _refused(validate_profiler, _with(Profiler, configure=lambda self, activity_types: None))
    assert reason.endswith(
        "has the signature (activity_types), but is called as configure(argument 1, argument 2, ts_ms=, duration_ms=): "
        "too many positional arguments"
    )
    _, reason = _refused(validate_session, _with(Session, process_trace=lambda self, logger: None))
    assert "is called as process_trace(argument 1, argument 2, argument 3, argument 4)" in reason


def test_extra_arguments_with_defaults_and_catch_all_signatures_fit() -> None:
    validate_profiler("demo", _with(Profiler, configure=lambda self, *args, **kwargs: None))
    validate_session("demo", _with(Session, stop=lambda self, timeout_s=3.0: None))


def test_a_session_needs_three_methods_and_no_more() -> None:
    session = Session()
    assert validate_session("demo", session) is session


@pytest.mark.parametrize("method", ["start", "stop", "process_trace"])
def test_each_of_the_three_is_needed(method: str) -> None:
    hook, reason = _refused(validate_session, _without(Session, method))
    assert hook == "profiler.configure"
    assert reason.endswith(f"is not an IActivityProfilerSession or None: it has no {method}")


def test_what_is_no_session_at_all_is_refused() -> None:
    assert _refused(validate_session, True) == (
        "profiler.configure",
        "bool True is not an IActivityProfilerSession or None: it has no start, stop or process_trace",
    )


def test_an_optional_method_of_a_session_must_be_callable_where_it_exists() -> None:
    _, reason = _refused(validate_session, _with(Session, get_metadata={"a": 1}))
    assert reason.endswith("is dict {'a': 1}, expected a method")


def test_a_property_that_raises_counts_as_missing() -> None:
    def broken(self: object) -> Any:
        raise RuntimeError("no")

    _, reason = _refused(validate_session, _with(Session, stop=property(broken)))
    assert reason.endswith("it has no stop")


@pytest.mark.parametrize("name", ["", " sim", "sim\n", "a,b", "a\tb", "x" * 101])
def test_a_name_that_cannot_be_typed_in_a_list_is_refused(name: str) -> None:
    assert _refused(validate_profiler, Profiler(name)) == (
        "profiler.name",
        f"a name must be a printable text of 1 to 100 characters, without commas or outer spaces; found {describe(name)}",
    )


@pytest.mark.parametrize(
    ("method", "value", "reason"),
    [
        ("name", None, "returned None, expected str: is a 'return' missing?"),
        ("capabilities", {}, "returned dict {}, expected Capabilities"),
        ("available_activities", [ActivityType.CPU_OP], "expected a set of ActivityType"),
        ("available_activities", {"kernel"}, "item 0 is str 'kernel', expected a set of ActivityType"),
    ],
)
def test_a_wrong_answer_at_registration_is_refused(method: str, value: object, reason: str) -> None:
    hook, found = _refused(validate_profiler, _with(Profiler, **{method: lambda self: value}))
    assert hook == f"profiler.{method}"
    assert reason in found


def test_a_method_that_raises_at_registration_is_named() -> None:
    def name(self: object) -> str:
        raise SystemExit(2)

    with pytest.raises(PluginError) as caught:
        validate_profiler("demo", _with(Profiler, name=name))
    assert (caught.value.hook, caught.value.reason) == ("profiler.name", "SystemExit: 2")
    assert isinstance(caught.value.__cause__, SystemExit)


@pytest.mark.parametrize("version", [(MAJOR, 0), (MAJOR, MINOR)])
def test_the_same_major_version_loads(version: tuple[int, int]) -> None:
    assert validate_profiler("demo", Profiler(contract_version=version)).capabilities.contract_version == version


@pytest.mark.parametrize(
    ("version", "step"),
    [
        ((MAJOR, MINOR + 1), "update devprof"),
        ((MAJOR + 1, 0), "update devprof"),
        ((MAJOR - 1, 7), f"update the plugin to one for contract {MAJOR}.x"),
    ],
)
def test_another_version_is_refused_with_what_to_update(version: tuple[int, int], step: str) -> None:
    assert _refused(validate_profiler, Profiler(contract_version=version)) == (
        "profiler.capabilities",
        f"it was written for contract {version[0]}.{version[1]}, this devprof has {MAJOR}.{MINOR}: {step}",
    )


@pytest.mark.parametrize("version", ["1.0", (1,), (1, "0"), None])
def test_a_version_that_is_no_pair_is_refused(version: object) -> None:
    _, reason = _refused(validate_profiler, Profiler(contract_version=version))
    assert reason.startswith("contract_version must be a pair of whole numbers such as (1, 0), found ")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"torch_device": ""}, "torch_device must be the name of a renamed backend or None, found str ''"),
        ({"torch_device": 3}, "torch_device must be the name of a renamed backend or None, found int 3"),
        ({"correlation": "read"}, "correlation must be a member of CorrelationAccess, found str 'read'"),
    ],
)
def test_wrong_capabilities_are_refused(fields: dict[str, Any], reason: str) -> None:
    assert _refused(validate_profiler, Profiler(**fields)) == ("profiler.capabilities", reason)


def test_stubs_that_fit_say_which_device_they_serve() -> None:
    assert validate_stubs("demo", Stubs("npu")) == "npu"


def test_stubs_need_every_method() -> None:
    hook, reason = _refused(validate_stubs, _without(Stubs, "record", "synchronize"))
    assert hook == "devprof_profiler_stubs"
    assert reason.endswith("is not ProfilerStubs: it has no record or synchronize")


@pytest.mark.parametrize(("device", "found"), [(None, "no such attribute"), ("", "str ''"), (3, "int 3")])
def test_stubs_need_a_torch_device(device: Any, found: str) -> None:
    assert _refused(validate_stubs, Stubs(device)) == (
        "devprof_profiler_stubs",
        f"torch_device must be the name of the renamed backend, such as 'npu'; found {found}",
    )


def test_a_build_that_fits_is_given_back(tmp_path: Path) -> None:
    build = NativeBuild("sim", (tmp_path / "sim.cpp",))
    assert validate_build("demo", build) is build


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        ("sim.cpp", "returned str 'sim.cpp', expected NativeBuild"),
        (NativeBuild("sim", ()), "build 'sim' needs sources as absolute paths, found none"),
        (NativeBuild("sim", ("sim.cpp",)), "build 'sim' needs sources as absolute paths, found str 'sim.cpp'"),  # type: ignore[arg-type]
        (NativeBuild("", (Path("/x"),)), "found str ''"),
    ],
)
def test_a_build_that_does_not_fit_is_refused(build: object, reason: str) -> None:
    _, found = _refused(validate_build, build)
    assert reason in found
