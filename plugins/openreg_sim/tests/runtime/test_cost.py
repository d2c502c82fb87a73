"""The cost model: torch's ops by name, and a roofline over their work."""

from __future__ import annotations

import pytest
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import CostModel
from openreg_sim.runtime.cost import kernel_of, work_of

F = "float32"


@pytest.mark.parametrize(
    ("op", "kernel"),
    [
        ("aten::mm", "mm_kernel"),
        ("aten::add_.Tensor", "add_kernel"),
        ("aten::mm.out", "mm_kernel"),
        ("aten::_foreach_add_", "foreach_add_kernel"),
        ("aten::_foreach_add_.List", "foreach_add_kernel"),
        ("aten::__and__.Scalar", "and_kernel"),
        ("aten::_softmax_backward_data", "softmax_backward_data_kernel"),
        ("mylib::foo", "foo_kernel"),
        ("foo", "foo_kernel"),
    ],
)
def test_a_kernel_has_a_name_of_its_own_after_the_op_that_launches_it(op: str, kernel: str) -> None:
    assert kernel_of(op) == kernel


@pytest.mark.parametrize(
    ("op", "shapes", "flops"),
    [
        ("aten::mm", [(3, 4), (4, 5)], 2 * 3 * 4 * 5),
        ("aten::mm.out", [(3, 4), (4, 5), (3, 5)], 2 * 3 * 4 * 5),
        ("aten::addmm", [(5,), (3, 4), (4, 5)], 2 * 3 * 4 * 5),
        ("aten::bmm", [(7, 3, 4), (7, 4, 5)], 2 * 7 * 3 * 4 * 5),
        ("aten::baddbmm", [(7, 3, 5), (7, 3, 4), (7, 4, 5)], 2 * 7 * 3 * 4 * 5),
        ("aten::mv", [(3, 4), (4,)], 2 * 3 * 4),
        ("aten::convolution_overrideable", [(2, 3, 8, 9), (5, 3, 3, 3), (5,)], 2 * 2 * 8 * 9 * 5 * 3 * 3 * 3),
        ("aten::convolution_backward_overrideable", [(2, 5, 8, 9), (2, 3, 8, 9), (5, 3, 3, 3)], 4 * 2 * 5 * 8 * 9 * 27),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", [(2, 4, 8, 16)] * 3, 4 * 2 * 4 * 8 * 8 * 16),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", [(2, 4, 8, 16)] * 4, 10 * 2 * 4 * 8 * 8 * 16),
        ("aten::_foreach_add_.List", [(10,), (20,), (10,), (20,)], 60),
        ("aten::add_.Tensor", [(10, 10), ()], 100),
        ("aten::mm", [(3, 4)], 12),
        ("aten::zero_", [], 1),
    ],
)
def test_work_is_counted_by_what_the_op_does(op: str, shapes: list[tuple[int, ...]], flops: float) -> None:
    assert work_of(op, [(F, shape) for shape in shapes]).flops == flops


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 4), ("Float", 4), ("torch.bfloat16", 2), ("Double", 8), ("Long", 8), ("bool", 1), ("unheard of", 4)],
)
def test_bytes_are_those_of_the_arguments_and_of_a_result_like_the_largest(dtype: str, size: int) -> None:
    assert work_of("aten::add.Tensor", [(dtype, (10, 10)), (dtype, (10,))]).bytes == (100 + 10 + 100) * size


def test_a_launch_has_a_thread_for_each_element() -> None:
    work = work_of("aten::relu", [(F, (1_000,))])
    assert (work.grid, work.block) == ((4, 1, 1), (256, 1, 1))


def test_durations_follow_the_model() -> None:
    model = CostModel(
        flops_per_s=1e9,
        bytes_per_s=1e8,
        kernel_fixed_ns=7,
        copy_fixed_ns=3,
        copy_bytes_per_s={CopyKind.HOST_TO_DEVICE: 1e9},
    )
    assert model.kernel_ns(flops=50, bytes=1) == 7 + 50
    assert model.kernel_ns(flops=50, bytes=10) == 7 + 100
    assert model.set_ns(1) == 7 + 10
    assert model.copy_ns(CopyKind.HOST_TO_DEVICE, 25) == 3 + 25
