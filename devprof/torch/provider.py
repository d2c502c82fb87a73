"""The bridge's correlation stacks, as `devprof.correlation` reads them during a torch session."""

from __future__ import annotations

from devprof.correlation import Correlation, CorrelationProvider, StackDepths
from devprof.torch.bridge import Bridge

__all__ = ["NativeStacks"]

_OP, _USER = 0, 1


class NativeStacks(CorrelationProvider):
    """Reads what torch pushed natively. One ctypes call per read, about 0.1 us; no Python runs at a push."""

    def __init__(self, bridge: Bridge) -> None:
        self._lib = bridge.lib

    def current_op_id(self) -> int:
        """Return the innermost op id of the calling thread, 0: none."""
        return int(self._lib.devprof_correlation_current(_OP))

    def current_user_id(self) -> int:
        """Return the innermost user id of the calling thread, 0: none."""
        return int(self._lib.devprof_correlation_current(_USER))

    def current(self) -> Correlation:
        """Return both."""
        return Correlation(self.current_op_id(), self.current_user_id())

    def push_correlation_id(self, id: int) -> None:
        """Open an op; torch does this itself, a framework beside it may."""
        self._lib.devprof_correlation_push(_OP, id)

    def pop_correlation_id(self) -> None:
        """Close the innermost op."""
        self._lib.devprof_correlation_pop(_OP)

    def push_user_correlation_id(self, id: int) -> None:
        """Open a user range."""
        self._lib.devprof_correlation_push(_USER, id)

    def pop_user_correlation_id(self) -> None:
        """Close the innermost user range."""
        self._lib.devprof_correlation_pop(_USER)

    def new_generation(self) -> int:
        """Return the running generation; Kineto's sessions start them, nobody else."""
        return 0

    def unbalanced_pops(self) -> int:
        """Return how many pops of this generation found an empty stack."""
        return int(self._lib.devprof_correlation_unbalanced())

    def depths(self) -> StackDepths:
        """Return how deep the calling thread's stacks are."""
        return StackDepths(
            int(self._lib.devprof_correlation_depth(_OP)), int(self._lib.devprof_correlation_depth(_USER))
        )
