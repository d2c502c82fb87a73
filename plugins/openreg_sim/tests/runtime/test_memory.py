"""Device memory is counted to the byte, runs out, and is given back."""

from __future__ import annotations

from typing import Any

import pytest
from openreg_sim.runtime import (
    ErrorCode,
    MemoryInfo,
    OpenRegError,
    OpenRegOutOfMemoryError,
    Runtime,
    RuntimeConfig,
)

LIMIT = 4_096


@pytest.fixture
def runtime() -> Runtime:
    return Runtime(RuntimeConfig.virtual_clock(memory_limit_bytes=LIMIT))


def test_what_is_in_use_is_counted_per_device(runtime: Runtime) -> None:
    first = runtime.allocate(100)
    runtime.allocate(1_000, device=1)
    runtime.allocate(600)
    runtime.free(first)
    assert runtime.memory_info(0) == MemoryInfo(600, 1_024, 700, LIMIT)
    assert runtime.memory_info(1) == MemoryInfo(1_000, 1_024, 1_000, LIMIT)


def test_memory_runs_out_with_the_figures_in_the_error_and_comes_back_with_free(runtime: Runtime) -> None:
    address = runtime.allocate(4_000)
    with pytest.raises(
        OpenRegOutOfMemoryError, match="device 0 has 0 of 4096 bytes left, 200 were asked for"
    ) as caught:
        runtime.allocate(200)
    error = caught.value
    assert (error.device, error.requested_bytes, error.allocated_bytes, error.limit_bytes) == (0, 200, 4_096, LIMIT)
    assert runtime.memory_info().allocated_bytes == 4_000
    runtime.allocate(200, device=1)
    runtime.free(address)
    assert runtime.allocate(200) != address


def test_nothing_is_freed_twice(runtime: Runtime) -> None:
    address = runtime.allocate(1)
    runtime.free(address)
    for wrong in (address, 0, address + 1):
        with pytest.raises(OpenRegError) as caught:
            runtime.free(wrong)
        assert caught.value.code is ErrorCode.INVALID_VALUE


def test_empty_allocations_have_addresses_of_their_own(runtime: Runtime) -> None:
    addresses = {runtime.allocate(0) for _ in range(3)}
    assert len(addresses) == 3
    assert runtime.memory_info() == MemoryInfo(0, 0, 0, LIMIT)


def test_a_listener_hears_of_allocations_releases_and_failures(runtime: Runtime) -> None:
    heard: list[tuple[Any, ...]] = []

    class Listener:
        def report_memory_usage(self, *figures: int) -> None:
            heard.append(("usage", *figures))

        def report_out_of_memory(self, *figures: int) -> None:
            # a listener may ask the runtime, from another thread too: no lock is held
            heard.append(("out of memory", *figures))

    runtime.memory_listener = Listener()
    address = runtime.allocate(100, device=1)
    with pytest.raises(OpenRegOutOfMemoryError):
        runtime.allocate(1 << 20, device=1)
    runtime.free(address)
    assert heard == [
        ("usage", address, 100, 100, 512, 1),
        ("out of memory", 1 << 20, 100, 512, 1),
        ("usage", address, -100, 0, 0, 1),
    ]
