"""Sessions under a virtual clock, where times depend on the program alone; says what the traces tell.

Run with ``DEVPROF_OPENREG_CLOCK=virtual``. Times are relative to the session's start, where a virtual clock is anchored.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import random_work
import simland
import torch
from simland import BOTH, CPU, DEVICE, Session

FOLDER = Path(tempfile.mkdtemp(dir="."))
KINDS = ["CONCURRENT_KERNEL", "GPU_MEMCPY", "GPU_MEMSET"]


def device_records(session: Session) -> list[Any]:
    """Return the records of devices as they are in the file."""
    start_ns = session.report.start_ns
    records = session.trace.slices("kernel", "gpu_memcpy", "gpu_memset")
    return [
        [one.category, one.name, *one.row, one.start_ns - start_ns, one.duration_ns, str(one.args)] for one in records
    ]


def first_program(activities: Sequence[Any]) -> dict[str, Any]:
    """Return the calls of the runtime, and torch's device times per op, ns."""
    session = simland.record(simland.first_program, FOLDER, activities)
    ops = [event for event in simland.host_events(session.prof) if event.name.startswith("aten::")]
    return {
        "launches": [one.name for one in session.trace.launches()],
        "total": [(event.name, round(event.device_time_total * 1000)) for event in ops],
        "self": [(event.name, round(event.self_device_time_total * 1000)) for event in ops],
    }


def random_program(seed: int) -> dict[str, Any]:
    """Return the device records of a random program, and where they differ from the truth."""
    steps = random_work.generate(seed)
    session = simland.record(lambda: random_work.run(steps), FOLDER)
    return {"records": device_records(session), "disagreements": simland.disagreements(session, exact=True)}


def gap_ns(wait: Callable[[torch.Event], None]) -> int:
    """Return how long after the end of a long kernel of device 0 a kernel of device 1 starts that may wait for it."""
    x = torch.ones(8, 8, device="openreg:1")

    def body() -> None:
        simland.long_kernel(0)
        wait(torch.openreg.default_stream(0).record_event())
        x * x

    session = simland.record(body, FOLDER)
    work = {one.name: one for one in session.trace.work()}
    return work["mul_kernel"].start_ns - work[simland.LONG_KERNEL].end_ns


def main() -> None:
    """Run all sessions and say what was found."""
    simland.first_program()
    random_work.run(random_work.generate(0))
    simland.say(
        with_launches=first_program(BOTH),
        without_launches=first_program([CPU, {DEVICE: KINDS}]),
        random={str(seed): random_program(seed) for seed in range(8)},
        gap_with_wait_ns=gap_ns(torch.openreg.default_stream(1).wait_event),
        gap_without_wait_ns=gap_ns(lambda event: None),
    )


if __name__ == "__main__":
    main()
