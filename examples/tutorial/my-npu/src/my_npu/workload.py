"""How the conformance kit makes the device work. Besides `launch` and `synchronize` everything is optional."""

from __future__ import annotations

from my_npu import device as _device


class Workload:
    """What the device can do; the kit leaves out what is not here, and says so."""

    streams = _device.STREAMS

    def launch(self, name: str, n: int, *, stream: int = 0) -> None:
        """Launch `n` kernels from the calling thread; this device has its own names for them."""
        for _ in range(n):
            _device.launch("gemm", stream=stream)

    def synchronize(self) -> None:
        """Wait until the device has done all its work."""
        _device.synchronize()

    def copy(self, n_bytes: int) -> None:
        """Copy memory once."""
        _device.copy(n_bytes)
