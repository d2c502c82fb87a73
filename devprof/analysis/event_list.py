"""`EventList`: the events of a trace as torch lists them; `events` and `key_averages` are the way in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from devprof.analysis.alike import Grouping
from devprof.analysis.averages import Averages, FunctionEventAvg, average_all
from devprof.analysis.columns import Longs
from devprof.analysis.figures import Figure, Figures
from devprof.analysis.function_event import FunctionEvent
from devprof.analysis.lists import Lists
from devprof.analysis.rows import Listing
from devprof.errors import UsageError
from devprof.store import Trace

__all__ = ["EventList", "events", "key_averages"]


class EventList(Listing[FunctionEvent]):
    """The events of a trace, by start; as torch's `EventList` (torch/autograd/profiler_util.py).

    Making one costs nothing; what is asked is computed once, and asking changes no number.
    """

    def __init__(self, trace: Trace) -> None:
        """Take a trace."""
        self.trace = trace
        self.figures = Figures(trace)
        self.lists = Lists(self.figures)

    def __repr__(self) -> str:
        return f"<EventList of {self.trace!r}>"

    @property
    def place(self) -> Longs:
        """(e,) int64, place of each event in `figures.events`."""
        return self.figures.order

    def __len__(self) -> int:
        return len(self.figures)

    @cached_property
    def counts(self) -> Longs:
        """(e,) int64, all 1."""
        return np.ones(len(self), dtype=np.int64)

    def column(self, figure: Figure) -> Longs:
        """Return one figure of every event: (e,) int64, ns or bytes."""
        return self.figures.column(figure)[self.place]

    def shapes(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each event's shapes, and their texts."""
        numbers, texts = self.lists.shapes
        return (numbers[self.place], texts) if len(texts) > 1 else None

    def overloads(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each event's overload name, and the names."""
        numbers, texts = self.lists.overloads
        return (numbers[self.place], texts) if len(texts) > 1 else None

    def stack_of(self, row: int) -> Sequence[str]:
        """Return an event's Python stack."""
        return self.lists.stacks.of(int(self.place[row]))

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> Averages:
        """Return sums over events that are alike; the arguments are called as in torch's `EventList`.

        Args:
            group_by_input_shapes: tell events apart by the shapes of their inputs.
            group_by_stack_n: and by so many innermost Python functions.
            group_by_overload_name: and by the overload of the op.

        Raises:
            UsageError: `group_by_stack_n` is no whole number from 0 on.
        """
        if not isinstance(group_by_stack_n, int) or group_by_stack_n < 0:
            raise UsageError(f"group_by_stack_n is {group_by_stack_n!r}; expected a number of functions, 0 for none")
        return Averages(
            self.lists, Grouping(bool(group_by_input_shapes), int(group_by_stack_n), bool(group_by_overload_name))
        )

    def total_average(self) -> FunctionEventAvg:
        """Return the sums over all events, as one row."""
        return average_all(self.lists)

    def _row(self, number: int) -> FunctionEvent:
        return FunctionEvent(self.lists, int(self.place[number]))


def events(trace: Trace) -> EventList:
    """Return the events of a trace as torch's `prof.events()` lists them, as views; nothing is computed yet."""
    return EventList(trace)


def key_averages(
    trace: Trace,
    group_by_input_shape: bool = False,
    group_by_stack_n: int = 0,
    group_by_overload_name: bool = False,
) -> Averages:
    """Return sums over the events of a trace that are alike; see `EventList.key_averages`.

    Raises:
        UsageError: `group_by_stack_n` is no whole number from 0 on.
    """
    return events(trace).key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)
