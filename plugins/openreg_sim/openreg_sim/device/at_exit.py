"""Leaving cleanly: no thread may want the GIL of an interpreter that has ended.

`Tensor.backward` hands the caller's `contextvars` to autograd's thread of each device, which drops them only after
`backward` has returned, and needs the GIL for it. A script that ends within those milliseconds would be killed by
`std::terminate`.
"""

from __future__ import annotations

from pathlib import Path

from openreg_sim.device.link import RuntimeLink

__all__ = ["leave"]

_PATIENCE_MS = 2_000


def leave(link: RuntimeLink) -> None:
    """Let autograd's threads drop what they hold of Python, then cut the way up from the native device. Called at exit."""
    try:
        if _autograd_threads_exist():
            # ctypes lets go of the GIL meanwhile, which is what they wait for
            link.library.orSettleAutograd(_PATIENCE_MS)
    finally:
        link.close()


def _autograd_threads_exist() -> bool:
    """Say whether a backward has ever run; settling would start the threads. True where that cannot be told."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return True
    return any(_name_of(task).startswith("pt_autograd_") for task in tasks.iterdir())


def _name_of(task: Path) -> str:
    try:
        return (task / "comm").read_text()
    except OSError:  # the thread has ended meanwhile
        return ""
