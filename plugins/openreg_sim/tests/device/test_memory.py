"""Memory of the devices: what is counted, what is reported, and what happens when it runs out."""

from __future__ import annotations

import gc

import pytest
import torch

SEGMENT = 2 << 20


@pytest.fixture(autouse=True)
def clean() -> None:
    """Count from nothing: what earlier tests left behind is collected first."""
    gc.collect()
    torch.openreg.empty_cache()
    torch.openreg.reset_peak_memory_stats()


def test_memory_is_counted_as_tensors_come_and_go() -> None:
    """In use, peak, reserved and free memory, through the module and through `torch.accelerator`."""
    before = torch.openreg.memory_allocated()
    x = torch.empty(1000, device="openreg")
    y = x + 1
    assert torch.openreg.memory_allocated() == torch.accelerator.memory_allocated() == before + 8000
    del y
    assert torch.openreg.memory_allocated() == before + 4000
    assert torch.openreg.max_memory_allocated() == torch.accelerator.max_memory_allocated() == before + 8000
    torch.openreg.reset_peak_memory_stats()
    assert torch.openreg.max_memory_allocated() == before + 4000
    assert x.shape == (1000,)


def test_devices_are_counted_apart() -> None:
    """An allocation counts on its device, wherever the calling thread is."""
    before = torch.openreg.memory_allocated(0), torch.openreg.memory_allocated("openreg:1")
    x = torch.empty(10, device="openreg:1")
    assert (torch.openreg.memory_allocated(0), torch.openreg.memory_allocated(1)) == (before[0], before[1] + x.nbytes)


def test_reserved_memory_is_kept_until_the_cache_is_emptied() -> None:
    """Segments are reserved as needed, and given back by `empty_cache` only."""
    before = torch.openreg.memory_reserved()
    x = torch.empty(5 * SEGMENT, dtype=torch.uint8, device="openreg")
    grown = torch.openreg.memory_reserved()
    free, total = torch.openreg.mem_get_info()
    assert before + 5 * SEGMENT <= grown <= before + 6 * SEGMENT
    assert (free, total) == ((16 << 30) - grown, 16 << 30)
    del x
    assert torch.openreg.memory_reserved() == grown
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved() == before
    assert torch.openreg.max_memory_reserved() == grown


def test_views_and_in_place_writes_take_no_memory() -> None:
    """Only fresh results do."""
    x = torch.ones(4, 4, device="openreg")
    before = torch.openreg.memory_allocated()
    views = [x.t(), x[1:], x.view(16), x.unsqueeze(0), *x.split(2), x.detach()]
    x.add_(1).mul_(2)
    assert torch.openreg.memory_allocated() == before
    assert len(views) == 7


def test_nothing_leaks_through_training() -> None:
    """A training step, exceptions in operators included, gives back all it took."""

    def step() -> None:
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, device="openreg")
        optimizer = torch.optim.Adam(layer.parameters())
        layer(torch.randn(3, 2, 16, device="openreg")).sum().backward()
        optimizer.step()
        with pytest.raises(RuntimeError):
            torch.ones(2, device="openreg") @ torch.ones(3, device="openreg")

    step()
    gc.collect()
    before = torch.openreg.memory_allocated()
    step()
    gc.collect()
    assert torch.openreg.memory_allocated() == before


def test_running_out_raises_torchs_own_error() -> None:
    """A limit makes allocations fail before they happen, and the device works on after that."""
    in_use = torch.openreg.memory_allocated()
    torch.openreg.set_memory_limit(in_use + 4096)
    small = torch.empty(1024, dtype=torch.uint8, device="openreg")
    with pytest.raises(
        torch.OutOfMemoryError, match=f"tried to allocate 40000 bytes, {in_use + 1024} of {in_use + 4096} bytes"
    ):
        torch.empty(10000, device="openreg")
    assert torch.accelerator.memory_stats()["num_ooms"] >= 1
    assert torch.openreg.mem_get_info()[1] == in_use + 4096
    torch.openreg.set_memory_limit(None)
    assert torch.empty(10000, device="openreg").nbytes == 40000
    assert small.nbytes == 1024


def test_results_of_operators_respect_the_limit() -> None:
    """A result that does not fit raises too, leaves nothing behind, and its operands are whole."""
    x = torch.ones(1000, device="openreg")
    in_use = torch.openreg.memory_allocated()
    torch.openreg.set_memory_limit(in_use + 100)
    with pytest.raises(torch.OutOfMemoryError):
        x.exp()
    assert torch.openreg.memory_allocated() == in_use
    assert x.sum().item() == 1000.0


def test_limits_must_make_sense() -> None:
    """A negative limit is refused."""
    with pytest.raises(ValueError, match="a memory limit of -1 bytes"):
        torch.openreg.set_memory_limit(-1)


def test_memory_outlives_its_device_being_current() -> None:
    """Tensors freed from another thread or device count on their own device."""
    x = torch.empty(10, device="openreg:1")
    before = torch.openreg.memory_allocated(1)
    with torch.openreg.device(0):
        del x
    assert torch.openreg.memory_allocated(1) == before - 40
