"""Kinds of activity have Kineto's numbers and names, and roles that do not depend on a vendor."""

from __future__ import annotations

import re

import pytest

from devprof.model import ActivityType, Role
from devprof.native import torch_facts


def _kinetos() -> list[str]:
    """Return the names of Kineto's kinds in the order of their numbers, as the installed torch's header has them."""
    torch = torch_facts()
    if torch is None:
        pytest.skip("needs torch's headers")
    text = (torch.root / "include/kineto/ActivityType.h").read_text(encoding="utf-8")
    body = re.search(r"enum class ActivityType\s*\{(.*?)\};", text, re.DOTALL)
    assert body is not None
    lines = re.sub(r"/\*.*?\*/|//[^\n]*", "", body.group(1), flags=re.DOTALL)
    names: list[str] = re.findall(r"^\s*(\w+)", lines, re.MULTILINE)
    return names[: names.index("ENUM_COUNT")]


def test_numbers_are_those_of_the_installed_kineto() -> None:
    kinetos = _kinetos()
    assert [kind.name for kind in ActivityType][: len(kinetos)] == kinetos


def test_numbers_are_dense_from_0() -> None:
    assert [int(kind) for kind in ActivityType] == list(range(len(ActivityType)))


def test_the_label_is_what_a_trace_calls_the_kind() -> None:
    assert ActivityType.CONCURRENT_KERNEL.label == "kernel"
    assert ActivityType.PRIVATEUSE1_RUNTIME.label == "privateuse1_runtime"
    assert len({kind.label for kind in ActivityType}) == len(ActivityType)


def test_device_work_is_kernels_copies_and_sets() -> None:
    assert {kind for kind in ActivityType if kind.is_device_work} == {
        ActivityType.GPU_MEMCPY,
        ActivityType.GPU_MEMSET,
        ActivityType.CONCURRENT_KERNEL,
        ActivityType.MTIA_CCP_EVENTS,
        ActivityType.HPU_OP,
    }


def test_every_vendors_runtime_and_driver_calls_are_launches() -> None:
    calls = {kind for kind in ActivityType if kind.name.endswith(("_RUNTIME", "_DRIVER"))}
    assert calls == {kind for kind in ActivityType if kind.role is Role.LAUNCH}


def test_a_kind_without_a_role_of_its_own_is_other() -> None:
    assert ActivityType.EXTERNAL_CORRELATION.role is Role.OTHER
    assert ActivityType.PYTHON_FUNCTION.role is Role.OTHER
