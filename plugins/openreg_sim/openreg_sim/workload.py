"""How to make the simulated device do work, for ``devprof conform openreg`` and the plugin's own conformance test.

Nothing of devprof is imported: a workload is any object with these methods.
"""

from __future__ import annotations

from typing import Any

from openreg_sim.ring import CopyKind
from openreg_sim.runtime import DropRecords, FailCall, runtime
from openreg_sim.runtime.records import ActivityKind

__all__ = ["TorchWorkload", "Workload"]

_FLOPS = 1e5
_ELEMENTS = 256


class Workload:
    """Work through the simulated runtime itself, without torch."""

    devices = 2
    streams = 2
    exact_names = True

    def __init__(self) -> None:
        self._side_stream = 0
        self._losing = 0

    def launch(self, name: str, n: int, device: int = 0, stream: int = 0) -> None:
        """Launch kernels; stream 1 is one beside the default stream."""
        if stream and not self._side_stream:
            self._side_stream = runtime().create_stream(0)
        for _ in range(n):
            runtime().launch(name, flops=_FLOPS, device=device, stream=self._side_stream if stream else 0)
            self._lost_one()

    def copy(self, n_bytes: int) -> None:
        """Copy from the host."""
        runtime().memcpy(CopyKind.HOST_TO_DEVICE, n_bytes)

    def set(self, n_bytes: int) -> None:
        """Set device memory."""
        runtime().memset(n_bytes)

    def allocate(self, n_bytes: int) -> int:
        """Take device memory."""
        return runtime().allocate(n_bytes)

    def free(self, address: int) -> None:
        """Give device memory back."""
        runtime().free(address)

    def synchronize(self) -> None:
        """Wait for both devices."""
        for device in range(runtime().device_count):
            runtime().device_synchronize(device)

    def device_calls(self) -> int:
        """Return how many calls the runtime has had."""
        return runtime().forgotten_calls + len(runtime().ground_truth())

    def lose(self, n: int) -> None:
        """Lose the records of the next n kernels, and count them as the device does."""
        self._losing = n
        runtime().inject(DropRecords(1, ActivityKind.KERNEL))

    def fail(self) -> None:
        """Let the next call fail."""
        runtime().inject(FailCall(1))

    def on_torch(self) -> TorchWorkload:
        """Return the workload for torch sessions."""
        return TorchWorkload()

    def _lost_one(self) -> None:
        if self._losing:
            self._losing -= 1
            if not self._losing:
                runtime().clear_faults()


class TorchWorkload:
    """Work through torch ops on the device `openreg`: one kernel each."""

    devices = 2
    streams = 2

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        self._tensors = [torch.zeros(_ELEMENTS, device=f"openreg:{index}") for index in range(self.devices)]
        self._side_stream: Any = None

    def launch(self, name: str, n: int, device: int = 0, stream: int = 0) -> None:
        """Add in place, n times."""
        openreg = self._torch.openreg
        if stream and self._side_stream is None:
            self._side_stream = openreg.Stream(device=0)
        target = self._side_stream if stream else openreg.default_stream(device)
        with openreg.stream(target):
            for _ in range(n):
                self._tensors[device].add_(1)

    def copy(self, n_bytes: int) -> None:
        """Copy from the host."""
        self._tensors[0].copy_(self._torch.ones(_ELEMENTS))

    def set(self, n_bytes: int) -> None:
        """Set device memory."""
        self._torch.zeros(n_bytes, dtype=self._torch.uint8, device="openreg:0")

    def allocate(self, n_bytes: int) -> list[Any]:
        """Take device memory, by a tensor that holds it."""
        return [self._torch.empty(n_bytes, dtype=self._torch.uint8, device="openreg:0")]

    def free(self, held: list[Any]) -> None:
        """Let the tensor go."""
        held.clear()

    def synchronize(self) -> None:
        """Wait for both devices."""
        for device in range(self.devices):
            self._torch.openreg.synchronize(device)
