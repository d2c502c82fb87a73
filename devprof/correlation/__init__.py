"""Which op and which user range are running on this thread.

Job: two stacks per thread, op ids and user ids, that a runtime reads at each launch.
In: pushes and pops from the host that records ops, or a native provider in their place.
Out: `current()`, `current_op_id()` and `current_user_id()`, callable from any thread at any time.
Never: invents an id, blocks, or knows who records.

Ids belong to threads, not to asyncio tasks: see `devprof.correlation.stacks`.
"""

from devprof.correlation.access import (
    current,
    current_op_id,
    current_user_id,
    depths,
    new_generation,
    pop_correlation_id,
    pop_user_correlation_id,
    push_correlation_id,
    push_user_correlation_id,
    set_provider,
    unbalanced_pops,
)
from devprof.correlation.provider import MAX_ID, Correlation, CorrelationProvider, StackDepths
from devprof.correlation.stacks import PythonStacks

__all__ = [
    "MAX_ID",
    "Correlation",
    "CorrelationProvider",
    "PythonStacks",
    "StackDepths",
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
