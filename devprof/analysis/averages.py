"""`Averages`: sums over events that are alike, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from devprof.analysis.alike import Grouping, Groups, grouped
from devprof.analysis.columns import Longs
from devprof.analysis.figures import FLOPS, Figure, Figures
from devprof.analysis.formatting import time_text
from devprof.analysis.function_event import FunctionEvent
from devprof.analysis.lists import Lists
from devprof.analysis.rows import Figured, Listing

__all__ = ["Averages", "FunctionEventAvg", "average_all"]


class FunctionEventAvg(Figured):
    """Sums over events that are alike; as torch's `FunctionEventAvg` (torch/autograd/profiler_util.py).

    What is no sum (scope, thread, parent, children) is that of the first of the events.
    """

    __slots__ = ("_averages", "_number")

    node_id = -1
    is_remote = False
    is_legacy = False

    def __init__(self, averages: Averages, number: int) -> None:
        self._averages = averages
        self._number = number

    def __repr__(self) -> str:
        device = f" device_time={time_text(self.device_time_total_ns)}" if self._backends else ""
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} cpu_time={time_text(self.cpu_time_total_ns)} "
            f"self_cpu_time={time_text(self.self_cpu_time_total_ns)}{device} device_type={self.device_type}>"
        )

    @property
    def _backends(self) -> tuple[str, ...]:
        return self._averages.figures.backends

    def _figure(self, figure: Figure) -> int:
        return int(self._averages.column(figure)[self._number])

    @property
    def first(self) -> FunctionEvent:
        """The first of the events."""
        return FunctionEvent(self._averages.lists, int(self._averages.place[self._number]))

    @property
    def key(self) -> str:
        """Name of the events."""
        return self._averages.title or self.first.name

    @property
    def count(self) -> int:  # type: ignore[override]  # a number of its own in every row
        """Number of events."""
        return int(self._averages.counts[self._number])

    @property
    def flops(self) -> int:
        """Floating point operations, 0 where they are not known."""
        return self._figure(FLOPS)

    @property
    def input_shapes(self) -> list[list[int]] | str:
        """Shapes of the inputs, "" unless events were grouped by them."""
        return self.first.input_shapes if self._averages.grouping.input_shapes else ""

    @property
    def overload_name(self) -> str:
        """Name of the op's overload, "" unless events were grouped by it."""
        return self.first.overload_name if self._averages.grouping.overload_name else ""

    @property
    def stack(self) -> list[str]:
        """The innermost Python functions, as many as events were grouped by."""
        return self.first.stack[: self._averages.grouping.stack_depth]

    @property
    def is_async(self) -> bool:
        """Whether the first one ended on another thread than it began on."""
        return self.first.is_async

    @property
    def is_user_annotation(self) -> bool:
        """Whether they are ranges that the user named."""
        return self.first.is_user_annotation

    @property
    def device_type(self) -> str:
        """Name of the backend whose they are, "cpu" for what ran on the host."""
        return self.first.device_type

    @property
    def use_device(self) -> str | None:
        """Names of the backends whose devices are in the trace, None where there are none."""
        return self.first.use_device

    @property
    def scope(self) -> int:
        """Number of the first one's `RecordScope`."""
        return self.first.scope

    @property
    def cpu_parent(self) -> FunctionEvent | None:
        """The host event around the first one."""
        return self.first.cpu_parent

    @property
    def cpu_children(self) -> Sequence[FunctionEvent]:
        """The host events inside the first one."""
        return self.first.cpu_children


class Averages(Listing[FunctionEventAvg]):
    """Rows of sums, in the order in which the first event of each began."""

    def __init__(self, lists: Lists, grouping: Grouping, groups: Groups | None = None, title: str = "") -> None:
        """Group the listed events.

        Args:
            lists: the listed events.
            grouping: what is alike.
            groups: the groups, if they are known.
            title: what the rows are called instead of their events' names.
        """
        self.lists = lists
        self.figures: Figures = lists.figures
        self.grouping = grouping
        self.title = title
        self._groups = groups or grouped(lists, grouping)
        self._columns: dict[Figure, Longs] = {}

    def __repr__(self) -> str:
        return f"<Averages of {len(self.figures)} events in {len(self)} rows>"

    @property
    def place(self) -> Longs:
        """(g,) int64, place of the first event of each row."""
        return self._groups.first

    @property
    def counts(self) -> Longs:
        """(g,) int64, number of events of each row."""
        return self._groups.counts

    def column(self, figure: Figure) -> Longs:
        """Return one figure of every row: (g,) int64, ns or bytes."""
        if figure not in self._columns:
            self._columns[figure] = self.figures.grouped(figure, self._groups.of_event, len(self))
        return self._columns[figure]

    def shapes(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each row's shapes, and their texts, if events were grouped by them."""
        return _of_rows(self.lists.shapes, self.place, empty="") if self.grouping.input_shapes else None

    def overloads(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each row's overload name, and the names, if events were grouped by them."""
        return _of_rows(self.lists.overloads, self.place, empty="") if self.grouping.overload_name else None

    def stack_of(self, row: int) -> Sequence[str]:
        """Return the Python functions that events were grouped by."""
        return self._row(row).stack if self.grouping.stack_depth else ()

    def total_average(self) -> FunctionEventAvg:
        """Return the sums over all events, as one row."""
        return average_all(self.lists)

    def _row(self, number: int) -> FunctionEventAvg:
        return FunctionEventAvg(self, number)


def average_all(lists: Lists) -> FunctionEventAvg:
    """Return the sums over all listed events, as one row called "Total"; without events it is a row of zeros."""
    count = len(lists.figures)
    groups = Groups(np.zeros(count, dtype=np.int64), np.zeros(1, dtype=np.int64), np.array([count]))
    return FunctionEventAvg(Averages(lists, Grouping(), groups, title="Total"), 0)


def _of_rows(numbered: tuple[Longs, list[str]], place: Longs, empty: str) -> tuple[Longs, Any] | None:
    numbers, texts = numbered
    return (numbers[place], texts) if any(text != empty for text in texts) else None
