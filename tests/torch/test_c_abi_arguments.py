"""The bridge's C ABI refuses pointers that are not there and lengths that cannot be, with an error code."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from ctypes import c_uint64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devprof
from devprof.torch.bridge import bridge
from devprof.torch.bridge_build import BRIDGE
from devprof.torch.native_types import Block, Column

REFUSED = -2


@pytest.fixture
def generation() -> Iterator[int]:
    lib = bridge().lib
    number = int(lib.devprof_capture_new())
    yield number
    lib.devprof_capture_drop(number)


def _texts(*texts: bytes, **fields: Any) -> dict[str, Any]:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.uint64)
    _keep.append(offsets)
    return {"text": b"".join(texts), "text_offsets": offsets.ctypes.data, "n_texts": len(texts), **fields}


_keep: list[object] = []


def _offsets(*numbers: int) -> int:
    array = np.array(numbers, dtype=np.uint64)
    _keep.append(array)
    return int(array.ctypes.data)


def _columns(**fields: Any) -> Any:
    array = (Column * 1)(Column(**{"key": b"k", "kind": 0, "width": 1} | fields))
    _keep.append(array)
    return array


def _append(generation: int, **fields: Any) -> int:
    return int(bridge().lib.devprof_capture_append(generation, ctypes.byref(Block(**fields))))


def test_a_block_that_is_well_is_taken(generation: int) -> None:
    assert _append(generation, rows=2, **_texts(b"a", b""), metadata=_columns(), n_metadata=1) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": 2**63},
        {"rows": 2**31 + 1},
        {"n_texts": 1},
        {"n_texts": 1, "text": b"a"},
        {"n_texts": 2**62, "text": b"a", "text_offsets": _offsets(0, 1)},
        {"n_texts": 1, "text": b"a", "text_offsets": _offsets(1, 1)},
        {"n_texts": 2, "text": b"abc", "text_offsets": _offsets(0, 3, 2)},
        {"n_metadata": 1},
        {"n_metadata": 2**40, "metadata": _columns()},
        {"n_metadata": 1, "metadata": _columns(key=None)},
        {"n_metadata": 1, "metadata": _columns(kind=5)},
        {"n_metadata": 1, "metadata": _columns(kind=-1)},
        {"n_metadata": 1, "metadata": _columns(kind=0, width=0)},
        {"n_metadata": 1, "metadata": _columns(kind=4, width=-1)},
        {"rows": 2**20, "n_metadata": 1, "metadata": _columns(kind=4, width=2**31 - 1)},
        {"n_counters": 1},
        {"n_counters": 1, "counters": _columns(kind=3)},
    ],
    ids=str,
)
def test_a_block_that_cannot_be_copied_is_refused(generation: int, fields: dict[str, Any]) -> None:
    assert _append(generation, **fields) == REFUSED


def test_pointers_that_are_not_there_are_not_followed(generation: int) -> None:
    lib = bridge().lib
    assert lib.devprof_capture_append(generation, None) == 0
    lib.devprof_capture_span(generation, None)
    lib.devprof_capture_device(generation, 0, 0, None, None)
    lib.devprof_capture_resource(generation, 0, 0, 0, None)
    lib.devprof_capture_metadata(generation, None, None)
    lib.devprof_capture_device_properties(generation, None)
    assert lib.devprof_demangles(None) == 0
    assert lib.devprof_correlation_mirror(None, None) == 0
    lib.devprof_known_ops(None, 5, None)
    assert lib.devprof_stubs_freed(None, 5) == 0


def test_a_capture_that_is_gone_is_answered_for_by_every_call() -> None:
    lib = bridge().lib
    gone = int(lib.devprof_capture_new())
    lib.devprof_capture_drop(gone)
    lib.devprof_capture_drop(gone)
    assert _append(gone, rows=1) == 0
    assert lib.devprof_capture_start_ns(gone) == 0
    assert lib.devprof_capture_ready(gone) == 0
    assert lib.devprof_capture_replayed(gone, (c_uint64 * 8)()) == 0
    assert lib.devprof_capture_outside(gone, None, 0) == 0


OBSERVED = {"devprof_demand_without_data"}
"""A counter, for whoever looks into a process."""


def test_the_bridge_exports_what_devprof_calls_and_nothing_for_tests() -> None:
    exports = re.compile(r'^(?:DEVPROF_EXPORT|extern "C" __attribute__).*?\b(devprof_\w+)\(', re.M)
    exported = {name for source in BRIDGE.sources for name in exports.findall(Path(source).read_text())}
    package = Path(devprof.__file__).parent
    code = "".join(path.read_text() for room in ("torch", "native") for path in sorted((package / room).glob("*.py")))
    called = set(re.findall(r"\.(devprof_\w+)", code))
    assert "devprof_stubs_register" in exported & called
    assert exported - called == OBSERVED
