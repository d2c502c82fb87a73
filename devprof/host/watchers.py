"""Register and remove callbacks on ranges."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from devprof.host.callbacks import CALLBACKS, CallbackHandle, Enter, Exit, checked_handle
from devprof.host.scopes import RecordScope

__all__ = ["add_global_callback", "add_thread_local_callback", "remove_callback"]

_logger = logging.getLogger("devprof.host")


def add_global_callback(
    enter: Enter,
    exit: Exit | None = None,
    *,
    scopes: Iterable[RecordScope] | None = None,
    sampling_probability: float = 1.0,
    needs_inputs: bool = False,
) -> CallbackHandle:
    """Call `enter` at the enter of every range of every thread, and `exit` at its exit. From any thread, at any time.

    Source: at::addGlobalCallback. Ranges that are open already are not told of.

    Args:
        enter: ``enter(event: RangeEvent) -> state``; runs on the thread of the range, before it starts.
        exit: ``exit(event, state)``; on the thread that leaves the range, after its end. Not called where `enter` raised.
        scopes: the kinds of ranges to be told of; None: all.
        sampling_probability: the share of ranges to be told of, chosen at random.
        needs_inputs: True to find the inputs in the event.

    Returns:
        A handle for `remove_callback`.

    Raises:
        UsageError: an argument is not what it should be.
    """
    handle = checked_handle(enter, exit, scopes, sampling_probability, needs_inputs)
    CALLBACKS.add(handle, here_only=False)
    return handle


def add_thread_local_callback(
    enter: Enter,
    exit: Exit | None = None,
    *,
    scopes: Iterable[RecordScope] | None = None,
    sampling_probability: float = 1.0,
    needs_inputs: bool = False,
) -> CallbackHandle:
    """Call `enter` and `exit` for the ranges of the calling thread, until it ends; as `add_global_callback` otherwise.

    Source: at::addThreadLocalCallback.
    """
    handle = checked_handle(enter, exit, scopes, sampling_probability, needs_inputs)
    CALLBACKS.add(handle, here_only=True)
    return handle


def remove_callback(handle: CallbackHandle, timeout_s: float = 1.0) -> bool:
    """Remove a callback and wait until no other thread is inside it. From any thread, also from inside a callback.

    When this returns True, the callback runs on no other thread and will not be called again: also the exits of ranges whose
    enter it saw are kept from it, and counted in `handle.discarded_exits`.

    Args:
        handle: from `add_global_callback` or `add_thread_local_callback`; removing it again does nothing.
        timeout_s: how long to wait.

    Returns:
        False, and a warning in the log, where a thread is still inside after that time.
    """
    CALLBACKS.remove(handle)
    is_drained = handle.drain(timeout_s)
    if not is_drained:
        _logger.warning("callback %r is removed, but a thread is still inside it after %g s", handle, timeout_s)
    return is_drained
