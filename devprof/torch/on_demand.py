"""What a capture needs of torch that was asked for from outside: every thread's ops, and when a step ends.

A profile of torch's records the thread that starts it and those that inherit its state. A capture starts on a thread of its
own, so it asks for all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from torch._C._profiler import _ExperimentalConfig
from torch.optim.optimizer import register_optimizer_step_post_hook

__all__ = ["count_optimizer_steps", "every_thread"]

_counting: list[Callable[[Hashable], object]] = []


def every_thread() -> object:
    """Return torch's setting to record every thread's ops."""
    return _ExperimentalConfig(profile_all_threads=True)


def count_optimizer_steps(passed: Callable[[Hashable], object]) -> None:
    """Call `passed` with the optimizer after every step of any of them. For the life of the process; later calls do nothing.

    torch iterates its hooks while it trains, so they are put there once and never taken away.
    """
    if _counting:
        return
    _counting.append(passed)

    def stepped(optimizer: Any, args: object, kwargs: object) -> None:
        passed(id(optimizer))

    register_optimizer_step_post_hook(stepped)
