"""Names that pip, Python and torch can use, derived from one; and what is said of those that they cannot."""

from __future__ import annotations

import pytest

from devprof.errors import UsageError
from devprof.scaffold import Names

GOOD = {
    "my-npu": ("my-npu", "my_npu"),
    "My_NPU": ("my-npu", "my_npu"),
    "acme.npu--x2": ("acme-npu-x2", "acme_npu_x2"),
    "n": ("n", "n"),
    "x" * 40: ("x" * 40, "x" * 40),
}
BAD = {
    "": "letters, digits",
    "my npu": "letters, digits",
    "-npu": "at both ends",
    "npu.": "at both ends",
    "../npu": "at both ends",
    "größe": "letters, digits",
    "npu\n": "letters, digits",
    "3d-npu": "begins with a digit",
    "class": "a word of Python's own",
    "json": "it would hide the module 'json'",
    "Torch": "it would hide the module 'torch'",
    "devprof": "it would hide the module 'devprof'",
    "x" * 41: "41 letters, 40 are the most",
}


@pytest.mark.parametrize("name", GOOD)
def test_a_name_is_normalized_for_pip_and_python_and_is_the_devices_unless_another_is_given(name: str) -> None:
    distribution, package = GOOD[name]
    assert Names.of(name) == Names(distribution, package, package)
    assert Names.of(name, "npu") == Names(distribution, package, "npu")


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_cannot_be_used_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Names.of(name)
    assert repr(name) in str(caught.value)
    assert BAD[name] in str(caught.value)


@pytest.mark.parametrize("device", ["", "my-npu", "NPU", "1npu", "class", "npu\n"])
def test_a_torch_device_that_could_be_no_attribute_of_torch_is_refused(device: str) -> None:
    with pytest.raises(UsageError, match="cannot be a torch device's name"):
        Names.of("my-npu", device)
