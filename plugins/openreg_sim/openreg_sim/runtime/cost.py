"""How long work takes: a roofline per device, and what torch's ops launch: the kernel's name and its work.

The one place to change if the device should be faster, slower or different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod
from typing import NamedTuple

from openreg_sim.ring import CopyKind

__all__ = ["CostModel", "Signature", "Work", "kernel_of", "work_of"]

Signature = Sequence[tuple[str, tuple[int, ...]]]
"""Tensor arguments of an op, in order: name of the dtype and shape."""

THREADS_PER_BLOCK = 256


class Work(NamedTuple):
    """What a kernel does.

    Attributes:
        flops: floating-point operations.
        bytes: bytes read and written.
        grid: blocks of the launch.
        block: threads of a block.
    """

    flops: float
    bytes: float
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (THREADS_PER_BLOCK, 1, 1)


def _copy_rates() -> dict[CopyKind, float]:
    return {
        CopyKind.HOST_TO_DEVICE: 12e9,
        CopyKind.DEVICE_TO_HOST: 12e9,
        CopyKind.DEVICE_TO_DEVICE: 250e9,
        CopyKind.PEER_TO_PEER: 25e9,
    }


@dataclass(frozen=True)
class CostModel:
    """Rates and latencies of a device.

    Attributes:
        flops_per_s: peak arithmetic.
        bytes_per_s: peak memory traffic.
        kernel_fixed_ns: what every kernel and set takes beside its work.
        copy_bytes_per_s: rate of each kind of copy.
        copy_fixed_ns: what every copy takes beside its bytes.
        launch_latency_ns: from the entry of a call to the earliest start of its work on the device.
        call_ns: how long a call keeps the host busy; used with a virtual clock only.
    """

    flops_per_s: float = 10e12
    bytes_per_s: float = 500e9
    kernel_fixed_ns: int = 2_000
    copy_bytes_per_s: Mapping[CopyKind, float] = field(default_factory=_copy_rates)
    copy_fixed_ns: int = 3_000
    launch_latency_ns: int = 4_000
    call_ns: int = 2_000

    def kernel_ns(self, flops: float, bytes: float) -> int:
        """Return the duration of a kernel: the slower of arithmetic and memory, and the fixed part."""
        return self.kernel_fixed_ns + ceil(1e9 * max(flops / self.flops_per_s, bytes / self.bytes_per_s))

    def copy_ns(self, kind: CopyKind, bytes: int) -> int:
        """Return the duration of a copy."""
        return self.copy_fixed_ns + ceil(1e9 * bytes / self.copy_bytes_per_s[kind])

    def set_ns(self, bytes: int) -> int:
        """Return the duration of a set."""
        return self.kernel_fixed_ns + ceil(1e9 * bytes / self.bytes_per_s)


def kernel_of(op_name: str) -> str:
    """Return the name of the kernel that a torch op launches.

    It is another name than the op's, as on real devices, so that a table tells the two apart. Without the namespace, the
    overload, and underscores around the name: ``"aten::_foreach_add_.List"`` launches ``"foreach_add_kernel"``.
    """
    return op_name.rpartition("::")[2].partition(".")[0].strip("_") + "_kernel"


def work_of(op_name: str, signature: Signature) -> Work:
    """Return the work of a torch op.

    Products, convolutions and attention are counted as they are; an op on lists of tensors as one operation per element;
    everything else as one per element of its largest tensor. The result is counted as one more tensor of the largest
    argument's size.

    Args:
        op_name: such as ``"aten::mm"`` or ``"aten::add_.Tensor"``.
        signature: its tensor arguments.
    """
    op = op_name.removeprefix("aten::").split(".")[0].rstrip("_")
    counts = [prod(shape) for _, shape in signature]
    elements = sum(counts) if op.startswith(_ON_LISTS) else max(counts, default=1)
    sizes = [prod(shape) * _item_bytes(dtype) for dtype, shape in signature]
    shapes = [shape for _, shape in signature]
    flops = _flops(op, shapes)
    blocks = max(1, -(-elements // THREADS_PER_BLOCK))
    return Work(float(elements if flops is None else flops), float(sum(sizes) + max(sizes, default=0)), (blocks, 1, 1))


_PRODUCTS = {"mm": 0, "addmm": 1, "bmm": 0, "baddbmm": 1, "matmul": 0, "mv": 0, "addmv": 1, "_addmm_activation": 1}
"""Matrix products, and the position of their left factor."""

_ON_LISTS = ("_foreach", "_fused", "_amp_foreach")


def _flops(op: str, shapes: Sequence[tuple[int, ...]]) -> float | None:
    try:
        if op in _PRODUCTS:
            left, right = shapes[_PRODUCTS[op] : _PRODUCTS[op] + 2]
            return 2.0 * prod(left) * (right[-1] if len(right) > 1 else 1)
        if op.startswith("convolution_backward"):
            output, _, weight = shapes[:3]
            return 2.0 * 2.0 * prod(output) * prod(weight[1:])
        if op.startswith("convolution"):
            # the output has the input's positions here: strides and padding are not part of a signature
            image, weight = shapes[:2]
            return 2.0 * image[0] * prod(image[2:]) * prod(weight)
        if op.startswith("_scaled_dot_product"):
            is_backward = "backward" in op
            query, key, value = shapes[is_backward : 3 + is_backward]
            # two products forward; backward does them again for the scores and twice for the gradients
            return (5.0 if is_backward else 2.0) * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])
    except (ValueError, IndexError):  # an overload with fewer tensors or dimensions
        return None
    return None


_ITEM_BYTES = {
    8: ("float64", "double", "int64", "long", "uint64", "complex64", "complexfloat"),
    4: ("float32", "float", "int32", "int", "uint32", "complex32", "complexhalf"),
    2: ("float16", "half", "bfloat16", "int16", "short", "uint16"),
    1: ("bool", "uint8", "byte", "int8", "char", "float8_e4m3fn", "float8_e5m2"),
    16: ("complex128", "complexdouble"),
}
_BYTES_OF = {name: size for size, names in _ITEM_BYTES.items() for name in names}


def _item_bytes(dtype: str) -> int:
    return _BYTES_OF.get(dtype.lower().removeprefix("torch."), 4)
