"""Leaving cleanly: no thread of autograd's may want the GIL when the interpreter ends.

`Tensor.backward` hands the caller's `contextvars` to autograd's thread of each device, which drops them only after
`backward` has returned, and needs the GIL for it. A script that ends within those milliseconds is killed by `std::terminate`.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import torch

__all__ = ["settle_autograd"]

_A_WHILE_S = 0.005


def settle_autograd(device_count: int) -> None:
    """Return when autograd's device threads have nothing of Python left in their hands.

    Each thread serves one queue, so a backward that carries no Python object, put behind the others, is proof that the
    former ones are gone. Where that cannot be told, a short wait makes the race unlikely.
    """
    if not _autograd_threads_exist():
        return
    try:
        if any(thread.daemon for thread in threading.enumerate() if thread is not threading.current_thread()):
            time.sleep(_A_WHILE_S)  # a backward of a daemon thread may be stuck, and would hold ours up for ever
        else:
            for device in range(device_count):
                _pass_through(device)
    except Exception:  # noqa: BLE001  # the process is ending, there is nobody to tell
        time.sleep(_A_WHILE_S)


def _autograd_threads_exist() -> bool:
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return True
    return any(name.read_text().startswith("pt_autograd_") for name in tasks.glob("*/comm"))


def _pass_through(device: int) -> None:
    """Run a backward on one device's thread, without the caller's context that `Tensor.backward` would attach."""
    with torch.inference_mode(False), torch.enable_grad():
        leaf = torch.zeros((), device=f"openreg:{device}", requires_grad=True)
        engine = torch.autograd.Variable._execution_engine
        engine.run_backward((leaf.neg(),), (torch.ones_like(leaf),), False, False, (), True, accumulate_grad=True)
