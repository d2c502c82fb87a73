"""Autocast on the device follows torch's lists of operators."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(4, 4, device="openreg") + 0.5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_run_in_the_lower_precision(x: torch.Tensor, dtype: torch.dtype) -> None:
    """The list of products and convolutions, for both dtypes that the device offers."""
    layer = nn.Conv1d(4, 4, 1).to("openreg")
    with torch.autocast("openreg", dtype=dtype):
        found = [
            (x @ x).dtype,
            nn.functional.linear(x, x).dtype,
            torch.bmm(x[None], x[None]).dtype,
            layer(x[None]).dtype,
        ]
    assert found == [dtype] * 4


def test_sensitive_operators_run_in_float32(x: torch.Tensor) -> None:
    """The list of exponentials, norms and losses, given half-precision arguments."""
    half = x.half()
    with torch.autocast("openreg", dtype=torch.float16):
        found = {
            "exp": half.exp(),
            "log": half.log(),
            "pow": half.pow(2),
            "layer_norm": nn.functional.layer_norm(half, (4,)),
            "mse_loss": nn.functional.mse_loss(half, half),
            "norm": half.norm(),
            "binary_cross_entropy": nn.functional.binary_cross_entropy(half.clamp(max=1), half.clamp(max=1)),
        }
    assert {name: result.dtype for name, result in found.items()} == dict.fromkeys(found, torch.float32)


def test_reductions_give_float32_unless_asked_otherwise(x: torch.Tensor) -> None:
    """The list of sums and softmaxes sets their `dtype`, which a caller may set too."""
    half = x.half()
    with torch.autocast("openreg", dtype=torch.float16):
        found = [half.softmax(0).dtype, half.sum().dtype, half.cumsum(0).dtype, half.sum(dtype=torch.float16).dtype]
    assert found == [torch.float32, torch.float32, torch.float32, torch.float16]


def test_operators_of_several_arguments_take_the_widest(x: torch.Tensor) -> None:
    """The list of promoting operators, among them `cat`, whose argument is a list."""
    half = x.half()
    with torch.autocast("openreg", dtype=torch.float16):
        found = [torch.addcmul(x, half, half).dtype, torch.cat([x, half]).dtype, torch.cat([half, half]).dtype]
    assert found == [torch.float32, torch.float32, torch.float16]


def test_other_tensors_are_left_alone(x: torch.Tensor) -> None:
    """Integers, float64 and the CPU's tensors pass unchanged; outside the block nothing is cast."""
    with torch.autocast("openreg", dtype=torch.float16):
        found = [
            (x.double() @ x.double()).dtype,
            (x.cpu() @ x.cpu()).dtype,
            torch.ones(2, device="openreg").long().sum().dtype,
        ]
    assert [*found, (x @ x).dtype] == [torch.float64, torch.float32, torch.int64, torch.float32]


def test_mixed_precision_training_step_is_what_the_casts_say() -> None:
    """Autocast, scaled loss, unscaled gradients and a step give what explicit casts give on the CPU."""

    def step(device: str, forward: Any) -> tuple[float, torch.Tensor]:
        torch.manual_seed(1)
        model, batch = nn.Linear(8, 4).to(device), torch.randn(6, 8).to(device)
        optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler(device, init_scale=64.0)
        loss = forward(model, batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item(), model.weight.detach().cpu()

    def with_autocast(model: nn.Linear, batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("openreg", dtype=torch.bfloat16):
            return model(batch).square().mean()

    def with_casts(model: nn.Linear, batch: torch.Tensor) -> torch.Tensor:
        low = [tensor.to(torch.bfloat16) for tensor in (batch, model.weight, model.bias)]
        return nn.functional.linear(*low).float().square().mean()

    torch.testing.assert_close(step("openreg", with_autocast), step("cpu", with_casts))


def test_overflowing_gradients_skip_the_step() -> None:
    """A scaler that finds an infinity leaves the parameters and halves its scale."""
    parameter = torch.ones(2, device="openreg", requires_grad=True)
    optimizer, scaler = torch.optim.SGD([parameter], lr=1.0), torch.amp.GradScaler("openreg", init_scale=8.0)
    scaler.scale(parameter.sum()).backward()
    assert parameter.grad is not None
    parameter.grad[0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    assert (parameter.tolist(), scaler.get_scale()) == ([1.0, 1.0], 4.0)
