"""`Results`: what a profile answers once it has recorded. Everything is computed from its trace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from devprof.errors import UsageError
from devprof.profiler.joining import joined
from devprof.store import Trace

if TYPE_CHECKING:
    from devprof.analysis import Averages
    from devprof.profiler.recorded import RecordedEvents

__all__ = ["Results"]


class Results:
    """Questions on the latest trace, or with ``acc_events=True`` on all so far. Usable from any thread."""

    def __init__(self, *, accumulate: bool, with_stack: bool) -> None:
        self._accumulates = accumulate
        self._has_stacks = with_stack
        self._make_latest: Callable[[], Trace] | None = None
        self._cycles: list[Trace] = []
        self._whole: Trace | None = None
        self._making = threading.Lock()

    @property
    def trace(self) -> Trace:
        """The trace of the latest cycle; made by whoever asks first, on any thread, while others wait.

        Raises:
            UsageError: there is none yet.
        """
        with self._making:
            if self._make_latest is not None:
                self._cycles.append(self._make_latest())
                self._make_latest = None
            if not self._cycles:
                raise UsageError(
                    "nothing is recorded yet; ask after stop(), after the with block, or in on_trace_ready"
                )
            return self._cycles[-1]

    @property
    def _has_results(self) -> bool:
        return bool(self._cycles) or self._make_latest is not None

    def events(self) -> RecordedEvents:
        """Return the recorded events, one by one. Callable from any thread.

        Raises:
            UsageError: nothing is recorded yet.
        """
        from devprof.profiler.recorded import RecordedEvents

        return RecordedEvents(self._all())

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> Averages:
        """Return figures per name. Callable from any thread.

        Args:
            group_by_input_shape: apart for each set of input shapes (record with ``record_shapes=True``).
            group_by_stack_n: apart for each of the innermost n lines of the stack (record with ``with_stack=True``).
            group_by_overload_name: apart for each overload.

        Raises:
            UsageError: nothing is recorded yet.
        """
        from devprof import analysis

        return analysis.key_averages(
            self._all(),
            group_by_input_shape=group_by_input_shape,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
        )

    def total_average(self) -> object:
        """Return figures over all events.

        Raises:
            UsageError: nothing is recorded yet.
        """
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Time on the host over all events, microseconds.

        Raises:
            UsageError: nothing is recorded yet.
        """
        return self.events().self_cpu_time_total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return the figures per name as a table, as ``key_averages().table(...)`` does.

        Raises:
            UsageError: nothing is recorded yet, or `sort_by` is no column.
        """
        return self.key_averages().table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write each stack on a line with its time, for flame graphs.

        Args:
            path: the file.
            metric: which time, such as ``"self_cpu_time_total"``.

        Raises:
            UsageError: nothing is recorded yet, no stacks are, or the metric is unknown.
        """
        if not self._has_stacks:
            raise UsageError("export_stacks needs stacks: make the profile with with_stack=True")
        from devprof import export

        export.stacks(self._all(), path, metric)

    def _cycle_ready(self, make_trace: Callable[[], Trace]) -> None:
        """Take over a cycle that has stopped; its trace is made when somebody asks, or now where cycles add up."""
        with self._making:
            self._whole = None
            self._make_latest = None
            if self._accumulates:
                self._cycles.append(make_trace())
            else:
                self._cycles, self._make_latest = [], make_trace

    def _all(self) -> Trace:
        latest = self.trace
        with self._making:
            if len(self._cycles) < 2:
                return latest
            if self._whole is None:
                self._whole = joined(self._cycles)
            return self._whole

    def _forget_threads(self) -> None:
        """Go on in the child of a fork, where the thread that made a trace is not there."""
        self._making = threading.Lock()

    def _add_fact(self, change: Callable[[Trace], Trace]) -> None:
        """Change the latest trace's facts, where it is made already."""
        with self._making:
            if self._cycles and self._make_latest is None:
                self._cycles[-1], self._whole = change(self._cycles[-1]), None
