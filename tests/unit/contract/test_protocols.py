"""The protocols follow the interfaces of the installed torch, and say for every method how it is called."""

from __future__ import annotations

import inspect
import re

import pytest

from devprof.contract import (
    ActivityLogger,
    DevprofSpec,
    IActivityProfiler,
    IActivityProfilerSession,
    MemoryReporter,
    ProfilerStubs,
    TraceStatus,
)
from devprof.native import torch_facts

# C++ name -> ours, where it is not the same in snake case: devprof takes all devices, Kineto takes one
RENAMED = {"getDeviceInfo": "get_device_infos"}


def _virtuals(header: str, interface: str) -> set[str]:
    """Return the virtual methods of an interface of the installed torch, under our names."""
    torch = torch_facts()
    if torch is None:
        pytest.skip("needs torch's headers")
    text = (torch.root / "include" / header).read_text(encoding="utf-8")
    body = re.search(rf"^(?:class|struct) [^;{{]*\b{interface}\b[^;{{]*\{{(.*?)^\}};", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    names = re.findall(r"\bvirtual\b[^;{(~]*?\b(\w+)\(", re.sub(r"//[^\n]*", "", body.group(1)))
    return {RENAMED.get(name, re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()) for name in names}


def _methods(protocol: type) -> dict[str, object]:
    return {name: member for name, member in vars(protocol).items() if inspect.isfunction(member) and name[0] != "_"}


@pytest.mark.parametrize(
    ("header", "interface", "protocol", "ours"),
    [
        ("kineto/IActivityProfiler.h", "IActivityProfiler", IActivityProfiler, {"capabilities"}),
        (
            "kineto/IActivityProfiler.h",
            "IActivityProfilerSession",
            IActivityProfilerSession,
            {
                "status",
                "clock_domain",
                "sample_clock",
                "native_correlation",
                "toggle_collection_dynamic",
                "flush_trace",
            },
        ),
        ("torch/csrc/profiler/stubs/base.h", "ProfilerStubs", ProfilerStubs, set()),
    ],
)
def test_every_method_of_the_interface_has_its_counterpart(
    header: str, interface: str, protocol: type, ours: set[str]
) -> None:
    found = _virtuals(header, interface)
    assert len(found) > 2
    assert _methods(protocol).keys() - ours == found


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        (protocol, name)
        for protocol in (IActivityProfiler, IActivityProfilerSession, ProfilerStubs, DevprofSpec, ActivityLogger)
        for name in _methods(protocol)
    ],
)
def test_a_method_says_its_thread_when_it_is_called_what_it_may_not_do_and_what_a_raise_means(
    protocol: type, name: str
) -> None:
    text = " ".join((inspect.getdoc(getattr(protocol, name)) or "").split())
    said = re.search(r"Thread: (\S.*) Called: (\S.*) Never: (\S.*) If it raises: (\S.*)", text)
    assert said is not None, text


def test_a_class_with_every_method_is_a_session_for_isinstance() -> None:
    whole = type("Whole", (), {name: lambda *_: None for name in _methods(IActivityProfilerSession)})
    half = type("Half", (), {name: lambda *_: None for name in ("start", "stop", "process_trace")})
    assert isinstance(whole(), IActivityProfilerSession)
    assert not isinstance(half(), IActivityProfilerSession)


def test_statuses_are_kinetos() -> None:
    torch = torch_facts()
    if torch is None:
        pytest.skip("needs torch's headers")
    text = (torch.root / "include/kineto/IActivityProfiler.h").read_text(encoding="utf-8")
    body = re.search(r"enum class TraceStatus\s*\{(.*?)\}", text, re.DOTALL)
    assert body is not None
    names = re.findall(r"^\s*(\w+),", body.group(1), re.MULTILINE)
    assert [status.name for status in TraceStatus] == names


@pytest.mark.parametrize("protocol", [ActivityLogger, MemoryReporter])
def test_what_devprof_gives_to_a_plugin_is_said_to_the_last_method(protocol: type) -> None:
    assert [name for name, method in _methods(protocol).items() if not inspect.getdoc(method)] == []
