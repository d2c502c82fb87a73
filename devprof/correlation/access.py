"""The functions that everybody calls; they go to the registered provider, or to the stacks in Python.

Every function may be called from any thread at any time, also while no session records.
"""

from __future__ import annotations

import operator

from devprof.correlation.provider import MAX_ID, Correlation, CorrelationProvider, StackDepths
from devprof.correlation.stacks import PythonStacks
from devprof.errors import UsageError

__all__ = [
    "current",
    "current_op_id",
    "current_user_id",
    "depths",
    "new_generation",
    "pop_correlation_id",
    "pop_user_correlation_id",
    "push_correlation_id",
    "push_user_correlation_id",
    "set_provider",
    "unbalanced_pops",
]

_python_stacks = PythonStacks()
_provider: CorrelationProvider = _python_stacks


def current_op_id() -> int:
    """Return the id of the innermost op on the calling thread, 0: none."""
    return _provider.current_op_id()


def current_user_id() -> int:
    """Return the id of the innermost user range on the calling thread, 0: none."""
    return _provider.current_user_id()


def current() -> Correlation:
    """Return the op id and the user id that a launch on the calling thread carries now.

    Example:
        >>> push_correlation_id(7)
        >>> current()
        Correlation(op_id=7, user_id=0)
        >>> pop_correlation_id()
    """
    return _provider.current()


def push_correlation_id(id: int) -> None:
    """Open an op on the calling thread.

    Raises:
        UsageError: the id is not a whole number from 1 to `MAX_ID`; 0 means "none" and would hide the op outside.
    """
    plain = type(id) is int and 0 < id <= MAX_ID
    _provider.push_correlation_id(id if plain else _checked(id))


def pop_correlation_id() -> None:
    """Close the innermost op on the calling thread; on an empty stack only count the call."""
    _provider.pop_correlation_id()


def push_user_correlation_id(id: int) -> None:
    """Open a user range on the calling thread.

    Raises:
        UsageError: as `push_correlation_id`.
    """
    plain = type(id) is int and 0 < id <= MAX_ID
    _provider.push_user_correlation_id(id if plain else _checked(id))


def pop_user_correlation_id() -> None:
    """Close the innermost user range on the calling thread; on an empty stack only count the call."""
    _provider.pop_user_correlation_id()


def new_generation() -> int:
    """Start a generation, as a host does when a session starts, and return its number.

    A thread's entries of an earlier generation are gone when the thread next uses its stacks.
    """
    return _provider.new_generation()


def unbalanced_pops() -> int:
    """Return how many pops of this generation, on all threads, found an empty stack."""
    return _provider.unbalanced_pops()


def depths() -> StackDepths:
    """Return how deep the calling thread's stacks are."""
    return _provider.depths()


def set_provider(provider: CorrelationProvider | None) -> CorrelationProvider | None:
    """Send every function above to `provider`, or with None back to the stacks in Python.

    A host calls it while no session records: entries are not carried over.

    Returns:
        The provider that was set before, or None.
    """
    global _provider
    before = _provider
    _provider = _python_stacks if provider is None else provider
    return None if before is _python_stacks else before


def _checked(id: object) -> int:
    # the slow half of the check: numpy integers pass, everything else says what is wrong with it
    try:
        number = operator.index(id)  # type: ignore[arg-type]  # whatever a caller gave
    except TypeError:
        raise UsageError(f"a correlation id is a whole number, found {type(id).__name__} {id!r}") from None
    if not 0 < number <= MAX_ID:
        raise UsageError(
            f"correlation id {number} is out of range: expected 1 to 2**64 - 1. "
            "0 means 'none'; where there is no id, do not push."
        )
    return number
