"""Models train on the device as they do on the CPU: same losses, same parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

Batch = Callable[[], tuple[tuple[torch.Tensor, ...], torch.Tensor]]


class _Sequence(nn.Module):
    """A recurrent layer that returns its outputs only, which is what `nn.Sequential` wants."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x)[0]
        return out


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), lambda: torch.randn(5, 6)),
    "conv2d": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten()),
        lambda: torch.randn(3, 2, 8, 8),
    ),
    "conv_transpose": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 4, 3, groups=2), nn.MaxPool2d(2), nn.Flatten()),
        lambda: torch.randn(3, 2, 6, 6),
    ),
    "layer_norm": (lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3)), lambda: torch.randn(5, 6)),
    "embedding": (lambda: nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 3)), lambda: torch.randint(11, (4, 5))),
    "lstm": (lambda: _Sequence(nn.LSTM(6, 4, num_layers=2, bidirectional=True)), lambda: torch.randn(5, 3, 6)),
    "gru": (lambda: _Sequence(nn.GRU(6, 4, dropout=0.5, num_layers=2)), lambda: torch.randn(5, 3, 6)),
    "transformer": (lambda: nn.TransformerEncoderLayer(16, 4, 32), lambda: torch.randn(5, 3, 16)),
}


def _train(
    model: nn.Module, batch: torch.Tensor, make_optimizer: Callable[[Any], torch.optim.Optimizer], device: str
) -> tuple[list[float], list[torch.Tensor]]:
    model = model.to(device)
    optimizer = make_optimizer(model.parameters())
    torch.manual_seed(7)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(batch.to(device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in model.parameters()]


def _assert_trains_alike(
    make_model: Callable[[], nn.Module],
    make_batch: Callable[[], torch.Tensor],
    make_optimizer: Callable[[Any], torch.optim.Optimizer],
) -> None:
    def run(device: str) -> tuple[list[float], list[torch.Tensor]]:
        torch.manual_seed(3)
        return _train(make_model(), make_batch(), make_optimizer, device)

    expected_losses, expected_parameters = run("cpu")
    losses, parameters = run("openreg")
    assert losses == pytest.approx(expected_losses, rel=1e-4)
    torch.testing.assert_close(parameters, expected_parameters, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_model_trains_as_on_the_cpu(name: str) -> None:
    """Forward, backward and three steps of Adam agree; dropout too, since the generators are alike."""
    _assert_trains_alike(*MODELS[name], lambda parameters: torch.optim.Adam(parameters, lr=0.01))


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd one by one": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "adam foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "adam one by one": lambda p: torch.optim.Adam(p, foreach=False),
    "adam fused": lambda p: torch.optim.Adam(p, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p),
    "adagrad": lambda p: torch.optim.Adagrad(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_steps_as_on_the_cpu(name: str) -> None:
    """Each form of an optimizer ends with the CPU's parameters."""
    _assert_trains_alike(*MODELS["linear"], OPTIMIZERS[name])


def test_foreach_optimizer_launches_one_kernel_for_all_parameters(calls: Any) -> None:
    """Adam's foreach form runs as few kernels as a device with multi-tensor kernels does, however many parameters."""
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(8))).to("openreg")
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    model(torch.randn(2, 4, device="openreg")).sum().backward()
    optimizer.step()
    calls.clear()
    optimizer.step()
    launches = calls.launches()
    assert all(name.startswith("foreach_") for name in launches)
    assert len(launches) < 16


def test_foreach_operators_work_over_several_devices() -> None:
    """Lists whose tensors lie on different devices are worked through one by one."""
    tensors = [torch.ones(2, device="openreg:0"), torch.ones(2, device="openreg:1"), torch.ones(2)]
    torch._foreach_add_(tensors, tensors)
    results = torch._foreach_mul(tensors, 3)
    assert [(str(result.device), result.tolist()) for result in results] == [
        (place, [6.0, 6.0]) for place in ("openreg:0", "openreg:1", "cpu")
    ]


def test_cross_entropy_and_its_gradient_are_those_of_the_cpu() -> None:
    """The loss of classification, with class indices and label smoothing."""
    logits, target = torch.randn(6, 5), torch.randint(5, (6,))

    def run(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = logits.to(device).detach().requires_grad_()
        loss = nn.functional.cross_entropy(leaf, target.to(device), label_smoothing=0.1)
        loss.backward()
        assert leaf.grad is not None
        return loss.detach().cpu(), leaf.grad.cpu()

    torch.testing.assert_close(run("openreg"), run("cpu"))


def test_gradient_clipping_works_across_devices() -> None:
    """Clipping groups the gradients by device, and takes the norm over all of them."""
    parameters = [torch.zeros(3, device=f"openreg:{i}", requires_grad=True) for i in range(2)]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 2.0)
    norm = nn.utils.clip_grad_norm_(parameters, 1.0)
    assert norm.item() == pytest.approx(24**0.5)
    assert [parameter.grad.norm().item() for parameter in parameters if parameter.grad is not None] == pytest.approx(
        [0.5**0.5] * 2, rel=1e-4
    )


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # advice about the graphs of other devices
def test_backward_crosses_devices() -> None:
    """A graph over both devices and the CPU gives each leaf its gradient, on its own device."""
    first = torch.ones(3, device="openreg:0", requires_grad=True)
    second = torch.ones(3, device="openreg:1", requires_grad=True)
    third = torch.ones(3, requires_grad=True)
    total = (first.to("openreg:1") * second * 2).cpu() * third
    total.sum().backward()
    grads = [first.grad, second.grad, third.grad]
    assert [str(grad.device) for grad in grads if grad is not None] == ["openreg:0", "openreg:1", "cpu"]
    assert [grad.tolist() for grad in grads if grad is not None] == [[2.0] * 3] * 3


def test_custom_function_and_hooks_run_on_the_device_thread() -> None:
    """Python code inside a backward sees the device's tensors."""
    seen: list[tuple[str, str]] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
            seen.append(("backward", str(gradient.device)))
            return gradient * 2

    leaf = torch.ones(2, device="openreg", requires_grad=True)
    leaf.register_hook(lambda gradient: seen.append(("hook", str(gradient.device))))
    Double.apply(leaf).sum().backward()
    assert seen == [("backward", "openreg:0"), ("hook", "openreg:0")]
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0, 2.0]


def test_checkpointing_recomputes_with_the_same_random_numbers() -> None:
    """Activation checkpointing restores the device's generator, so dropout is the same the second time."""
    from torch.utils.checkpoint import checkpoint

    leaf = torch.ones(64, device="openreg", requires_grad=True)
    out = checkpoint(lambda x: nn.functional.dropout(x * 1, 0.5), leaf, use_reentrant=False)
    out.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.equal(out.detach())


def test_four_threads_train_at_once() -> None:
    """Threads on both devices end with the parameters that a thread alone ends with."""

    def run(
        device: str, results: dict[int, list[torch.Tensor]], key: int, model: nn.Module, batch: torch.Tensor
    ) -> None:
        _, results[key] = _train(model, batch, lambda p: torch.optim.Adam(p, lr=0.01), device)

    def job(device: str) -> tuple[str, nn.Module, torch.Tensor]:
        torch.manual_seed(3)
        return device, nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)), torch.randn(5, 6)

    alone: dict[int, list[torch.Tensor]] = {}
    device, model, batch = job("openreg:0")
    run(device, alone, 0, model, batch)
    together: dict[int, list[torch.Tensor]] = {}
    threads = []
    for key in range(4):
        device, model, batch = job(f"openreg:{key % 2}")
        threads.append(threading.Thread(target=run, args=(device, together, key, model, batch)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(together) == [0, 1, 2, 3]
    for parameters in together.values():
        torch.testing.assert_close(parameters, alone[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.func imports parts of torch that are on their way out
def test_forward_mode_and_vmap_work() -> None:
    """torch.func's transforms reach the device's kernels as any other device's."""
    from torch.func import grad, jvp, vmap

    x = torch.randn(4, device="openreg")
    _, tangent = jvp(lambda v: v.sin().sum(), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(tangent.cpu(), x.cpu().cos().sum())
    batched = vmap(grad(lambda v: (v * v).sum()))(x.unsqueeze(0).expand(3, 4))
    torch.testing.assert_close(batched.cpu(), (2 * x.cpu()).expand(3, 4))


def test_inference_mode_allows_views_and_writes() -> None:
    """Tensors made in inference mode are inference tensors, views of them included."""
    with torch.inference_mode():
        x = torch.zeros(2, 3, device="openreg")
        x.t().add_(1)
        assert x.is_inference()
        assert x.t().is_inference()
    assert x.sum().item() == 6.0
