"""`RuntimeConfig`: what a simulated machine is made of."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from openreg_sim.runtime.clocks import NS_PER_S
from openreg_sim.runtime.cost import CostModel

__all__ = ["RuntimeConfig"]


@dataclass(frozen=True)
class RuntimeConfig:
    """Facts about a simulated machine.

    All its devices share one device clock, because devprof knows one clock domain per session.

    Attributes:
        device_count: number of devices.
        virtual: time passes only by calls, so that a program gets the same times on every run.
        cost: how long work takes.
        ticks_per_second: nominal rate of the device clock.
        clock_offset_ticks: reading of the device clock when the runtime is made.
        clock_drift_ppm: how much faster than nominal it really runs.
        clock_jitter_ticks: how late a reading of it may come back.
        seed: of the jitter.
        memory_limit_bytes: memory of each device.
        truth_calls: how many of the latest calls `Runtime.ground_truth` remembers.
        delivery_rows: records are handed to the profiler once this many calls have piled up, and at every flush.
    """

    device_count: int = 2
    virtual: bool = False
    cost: CostModel = field(default_factory=CostModel)
    ticks_per_second: int = NS_PER_S
    clock_offset_ticks: int = 7_250_000_000
    clock_drift_ppm: float = 20.0
    clock_jitter_ticks: int = 0
    seed: int = 0
    memory_limit_bytes: int = 16 << 30
    truth_calls: int = 1 << 18
    delivery_rows: int = 8_192

    @classmethod
    def virtual_clock(cls, **changes: object) -> RuntimeConfig:
        """Return a machine with a virtual host clock and a device clock that agrees with it."""
        config = cls(virtual=True, clock_offset_ticks=0, clock_drift_ppm=0.0)
        return replace(config, **changes)  # type: ignore[arg-type]  # the fields' own types are checked by the callers

    @classmethod
    def from_environment(cls) -> RuntimeConfig:
        """Return the machine that ``DEVPROF_OPENREG_CLOCK`` and ``DEVPROF_OPENREG_DEVICES`` describe.

        Raises:
            ValueError: a variable holds something else than a clock (``real``, ``virtual``) or a number from 1.
        """
        clock = os.environ.get("DEVPROF_OPENREG_CLOCK", "real")
        if clock not in ("real", "virtual"):
            raise ValueError(f"DEVPROF_OPENREG_CLOCK is {clock!r}; expected 'real' or 'virtual'")
        devices = os.environ.get("DEVPROF_OPENREG_DEVICES", "2")
        if not devices.isdecimal() or int(devices) < 1:
            raise ValueError(f"DEVPROF_OPENREG_DEVICES is {devices!r}; expected a number from 1")
        config = cls.virtual_clock() if clock == "virtual" else cls()
        return replace(config, device_count=int(devices))
