"""Data between the CPU and the devices, and through files."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from torch import nn

PLACES = ["cpu", "openreg:0", "openreg:1"]


@pytest.mark.parametrize("source", PLACES)
@pytest.mark.parametrize("target", PLACES)
def test_copies_between_all_places_keep_values_and_layout(source: str, target: str) -> None:
    """`to` keeps values, dtype and strides from everywhere to everywhere."""
    original = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    moved = original.to(source).to(target)
    assert (str(moved.device), moved.stride()) == (target, original.stride())
    assert moved.cpu().equal(original)


@pytest.mark.parametrize("source", PLACES)
@pytest.mark.parametrize("target", PLACES)
def test_copying_converts_and_broadcasts(source: str, target: str) -> None:
    """`copy_` converts dtypes and spreads a smaller source, into a part of a tensor."""
    out = torch.zeros(3, 4, dtype=torch.float64, device=target)
    out[:, ::2].copy_(torch.tensor([1, 2], device=source))
    assert out.tolist() == [[1.0, 0.0, 2.0, 0.0]] * 3


def test_copies_resolve_conjugates_and_negatives() -> None:
    """Lazy conjugation and negation are part of the values."""
    x = torch.tensor([1 + 2j, 3 - 4j])
    there = x.to("openreg")
    assert there.conj().cpu().tolist() == [1 - 2j, 3 + 4j]
    assert there.conj().imag.cpu().tolist() == [-2.0, 4.0]
    assert torch.empty_like(there).copy_(x.conj()).cpu().tolist() == [1 - 2j, 3 + 4j]


def test_copies_are_told_to_the_device_by_direction(calls: Any) -> None:
    """Host copies are copies, and waited for; plain copies within a device too; converting ones are kernels."""
    from openreg_sim.ring import CopyKind

    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    calls.clear()
    x.clone()
    x.to(torch.float64)
    x.cpu()
    torch.ones(4).to("openreg")
    torch.ones(4).to("openreg", non_blocking=True)
    copies = calls.rows("MEMCPY")
    kinds = [CopyKind(int(row["detail0"])) for row in copies]
    assert kinds == [
        CopyKind.DEVICE_TO_DEVICE,
        CopyKind.DEVICE_TO_HOST,
        CopyKind.HOST_TO_DEVICE,
        CopyKind.HOST_TO_DEVICE,
    ]
    assert copies["bytes"].tolist() == [16] * 4
    assert calls.launches() == ["copy_kernel"]
    assert calls.names() == [
        "MEMCPY", "LAUNCH", "MEMCPY", "STREAM_SYNCHRONIZE", "MEMCPY", "STREAM_SYNCHRONIZE", "MEMCPY",
    ]  # fmt: skip


def test_copy_between_devices_orders_both_streams(calls: Any) -> None:
    """A peer copy begins after the source's work, and the source's later work begins after the copy."""
    x = torch.ones(1000, device="openreg:0").exp()
    y = x.to("openreg:1")
    x.add_(1)
    assert y.cpu().equal(torch.ones(1000).exp())
    (made,) = (row for row in calls.rows("LAUNCH") if calls._runtime.name_of(int(row["name"])) == "exp_kernel")
    (copied,) = (row for row in calls.rows("MEMCPY") if int(row["detail0"]) == 4)
    (changed,) = (row for row in calls.rows("LAUNCH") if calls._runtime.name_of(int(row["name"])) == "add_kernel")
    assert (int(made["device"]), int(copied["device"]), int(copied["detail1"])) == (0, 1, 0)
    assert made["end_ns"] <= copied["start_ns"] < copied["end_ns"] <= changed["start_ns"]


def test_tensors_and_modules_survive_files() -> None:
    """`torch.save` and `load` bring tensors back to their device, or to another one."""
    module = nn.Linear(3, 2).to("openreg:1")
    buffer = io.BytesIO()
    torch.save({"module": module.state_dict(), "view": torch.arange(6, device="openreg").reshape(2, 3).t()}, buffer)

    def load(**options: Any) -> Any:
        buffer.seek(0)
        return torch.load(buffer, **options)

    same, moved = load(), load(map_location="openreg:0")
    assert (str(same["module"]["weight"].device), str(moved["module"]["weight"].device)) == ("openreg:1", "openreg:0")
    assert load(map_location="cpu")["module"]["weight"].equal(module.weight.cpu())
    assert same["view"].cpu().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_deep_copies_are_independent_and_keep_sharing() -> None:
    """A deep copy has memory of its own, and tensors that shared memory share it in the copy too."""
    base = torch.zeros(4, device="openreg")
    twin_base, twin_view = copy.deepcopy([base, base[1:3]])
    twin_base.fill_(5)
    assert (base.tolist(), twin_view.tolist()) == ([0.0] * 4, [5.0, 5.0])
    model = copy.deepcopy(nn.Linear(2, 2).to("openreg"))
    assert str(model.weight.device) == "openreg:0"


def test_storages_can_be_used_directly() -> None:
    """Untyped storages of the device are made, resized, shared and copied."""
    storage = torch.UntypedStorage(8, device="openreg:1")
    view = torch.empty(0, dtype=torch.int32, device="openreg:1").set_(storage, 0, (2,))
    view.copy_(torch.tensor([7, 9]))
    storage.resize_(16)
    assert (storage.device.index, storage.nbytes(), view.tolist()) == (1, 16, [7, 9])
    assert list(storage.cpu()[:8]) == list(torch.tensor([7, 9], dtype=torch.int32).untyped_storage())
    assert view.untyped_storage().data_ptr() == storage.data_ptr()


def test_resizing_keeps_what_fits() -> None:
    """`resize_` gives more memory and keeps the elements."""
    x = torch.arange(3.0, device="openreg")
    x.resize_(2, 3)
    assert x.shape == (2, 3)
    assert x[0].tolist() == [0.0, 1.0, 2.0]


def test_pinned_memory_is_known_as_such() -> None:
    """Tensors are pinned for the device, and views of them are pinned too."""
    plain, pinned = torch.ones(4), torch.ones(4).pin_memory()
    assert (plain.is_pinned(), pinned.is_pinned(), pinned[1:].is_pinned()) == (False, True, True)
    assert pinned.to("openreg", non_blocking=True).tolist() == [1.0] * 4


def test_data_loader_pins_for_the_device() -> None:
    """A loader with `pin_memory` pins through the device's allocator."""
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.arange(4.0)), batch_size=2, pin_memory=True
    )
    assert [(batch.tolist(), batch.is_pinned()) for (batch,) in loader] == [([0.0, 1.0], True), ([2.0, 3.0], True)]


def test_tensors_are_plain_tensors() -> None:
    """No subclass, an address, sizes, and the generated `openreg` methods."""
    x = torch.ones(2, 3, device="openreg:1")
    assert type(x) is torch.Tensor
    assert x.data_ptr() != 0
    assert x.nbytes == 24
    assert (x.is_openreg, x.cpu().is_openreg, str(x.cpu().openreg(1).device)) == (True, False, "openreg:1")
    assert str(nn.Linear(1, 1).openreg().weight.device) == "openreg:0"
    with pytest.raises(TypeError, match="convert openreg"):
        x.numpy()


@pytest.mark.parametrize("other", ["openreg:1", "cpu"])
def test_operands_on_different_devices_are_refused(other: str) -> None:
    """Mixing devices is the caller's mistake, as for any device, although here all memory is the host's."""
    x, y = torch.ones(2, device="openreg:0"), torch.ones(2, device=other)
    message = f"found at least two devices, openreg:0 and {other}!"
    for call in (lambda: x + y, lambda: torch.cat([x, y]), lambda: torch.where(x > 0, x, y), lambda: x.add_(y)):
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(RuntimeError, match="found at least two devices"):
        torch.add(x, x, out=y)


def test_host_scalars_and_host_indices_are_welcome() -> None:
    """A tensor without dimensions may come from the CPU, and so may indices and masks."""
    x = torch.arange(4.0, device="openreg")
    assert (x + torch.tensor(1.0)).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert x[torch.tensor([3, 0])].tolist() == [3.0, 0.0]
    x[torch.tensor([True, False, True, False])] = 9.0
    assert x.tolist() == [9.0, 1.0, 9.0, 3.0]


def test_what_the_device_does_not_have_is_refused_with_a_reason() -> None:
    """Sparse, nested and quantized tensors, and devices beyond the last."""
    with pytest.raises(NotImplementedError, match="aten::_to_sparse makes a tensor that is not strided"):
        torch.eye(2, device="openreg").to_sparse()
    with pytest.raises(NotImplementedError, match="makes a tensor that is nested"):
        torch._nested_tensor_from_mask(torch.ones(2, 3, 4, device="openreg"), torch.ones(2, 3, device="openreg").bool())
    with pytest.raises(NotImplementedError, match="makes a tensor that is quantized"):
        torch.ops.aten.quantize_per_tensor(torch.ones(3, device="openreg"), 0.1, 0, torch.qint8)
    with pytest.raises(RuntimeError, match="device index 9 is out of range, there are"):
        torch.ones(1, device="openreg:9")
