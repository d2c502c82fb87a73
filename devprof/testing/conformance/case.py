"""`ProfilerConformance`: the checks as a class of tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from devprof.testing.conformance.bench import Bench, Settings
from devprof.testing.conformance.catalogue import CHECKS
from devprof.testing.conformance.features import features_of
from devprof.testing.conformance.report import Finding, Report, State, judge, settle
from devprof.testing.conformance.subject import Subject, made
from devprof.testing.conformance.table import Check
from devprof.testing.conformance.workload import Device

__all__ = ["REPORTS", "ProfilerConformance"]

REPORTS: list[Report] = []
"""Reports of the classes that have run in this process, for the end of a pytest run."""


class ProfilerConformance:
    """Tests of one plugin. pytest collects a subclass whose name begins with ``Test``.

    Every check is a method ``test_c101_name_is_short_and_stable``; one that is tried under torch too has another method with
    ``_on_torch`` at its end. What a plugin cannot keep, a subclass takes out: ``test_c504_... = None``.

    Attributes:
        plugin: name of an installed plugin, or a function that returns an activity profiler or a plugin object.
        workload: how to make the device do work: see `Workload`. An object, or a class or function that makes one.
        settings: how hard to try.

    Example:
        class TestNpu(ProfilerConformance):
            plugin = "npu"
            workload = NpuWorkload
    """

    plugin: ClassVar[Any] = None
    workload: ClassVar[Any] = None
    settings: ClassVar[Settings] = Settings()

    _subject: ClassVar[Subject | None] = None
    _device: ClassVar[Device | None] = None
    _findings: ClassVar[list[Finding]] = []

    @classmethod
    def setup_class(cls) -> None:
        """Begin: nothing is known yet."""
        cls._subject, cls._device, cls._findings = None, None, []

    @classmethod
    def teardown_class(cls) -> None:
        """End: keep the report, and take the plugin out."""
        subject, device = cls._subject, cls._device
        if subject is None or device is None:
            return
        features = features_of(Bench(subject, device, settings=cls.settings))
        REPORTS.append(Report(subject.title, [settle(one, cls._findings) for one in cls._findings], features))
        subject.close()
        cls._subject = None

    @classmethod
    def _bench(cls, host: str) -> Bench:
        if cls._subject is None or cls._device is None:
            # a function in a class body is a method by now; it was meant as it was written
            plugin, workload = (cls.__dict__.get(key, getattr(cls, key)) for key in ("plugin", "workload"))
            cls._subject = Subject(getattr(plugin, "__func__", plugin))
            cls._device = Device(made(getattr(workload, "__func__", workload)))
        return Bench(cls._subject, cls._device, host, cls.settings)

    def _run(self, check: Check, host: str) -> None:
        bench = type(self)._bench(host)
        if host == "torch" and (reason := without_torch(bench)):
            _skip(f"{check.number} under torch: {reason}")
        findings = type(self)._findings
        findings.append(judge(check, bench))
        finding = settle(findings[-1], findings)
        if finding.state is State.FAILED:
            _fail(finding.text)
        if finding.state in (State.SKIPPED, State.UNDECIDED):
            _skip(f"{check.number} {finding.state.value}: {finding.reason}")


def without_torch(bench: Bench) -> str:
    """Return why a plugin cannot be tried under torch here; empty where it can."""
    profiler = bench.subject.profiler
    if profiler is None or profiler.capabilities.torch_device is None:
        return "the plugin serves no torch device"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    from devprof.torch.participants import backend_name

    device, found = profiler.capabilities.torch_device, backend_name()
    if found is None:
        return (
            f"no backend of torch is renamed: call torch.utils.rename_privateuse1_backend({device!r}) before the tests"
        )
    return "" if found == device else f"torch's renamed backend is {found!r}, the plugin serves {device!r}"


def _fail(text: str) -> NoReturn:
    import pytest

    __tracebackhide__ = True
    pytest.fail(text, pytrace=False)


def _skip(text: str) -> NoReturn:
    import pytest

    __tracebackhide__ = True
    pytest.skip(text)


def _test(check: Check, host: str) -> Callable[[ProfilerConformance], None]:
    def test(self: ProfilerConformance) -> None:
        self._run(check, host)

    suffix = "_on_torch" if host == "torch" else ""
    test.__name__ = f"test_{check.number.lower()}_{check.name}{suffix}"
    test.__qualname__ = f"{ProfilerConformance.__qualname__}.{test.__name__}"
    test.__doc__ = check.promise
    return test


for _check in CHECKS:
    for _host in _check.hosts:
        _made = _test(_check, _host)
        setattr(ProfilerConformance, _made.__name__, _made)
