"""What an event and an average of events have in common: a row of a list, read from its columns when it is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from devprof.analysis.columns import Bools, Longs
from devprof.analysis.figures import Figure, Figures
from devprof.analysis.formatting import time_text
from devprof.analysis.sort_keys import Asked, asked_of, sort_key
from devprof.analysis.table import Widths, html_of, table_of
from devprof.store import HOST_BACKEND

__all__ = ["Figured", "Listing"]

_IN_A_NOTEBOOK = 100
"""Rows of the table that a notebook shows by itself."""


class Figured(ABC):
    """The figures of one row, under torch's names; times in microseconds, ``*_ns`` in nanoseconds.

    Beside the names written here, old spellings (``cuda_time_total``) and those with a backend's name
    (``self_openreg_time_total``) are attributes too.
    """

    __slots__ = ()

    count: int

    @abstractmethod
    def _figure(self, figure: Figure) -> int:
        """Return one figure of the row, ns or bytes."""

    @property
    @abstractmethod
    def _backends(self) -> tuple[str, ...]:
        """Backends whose names may stand in an attribute's."""

    def _sum(self, asked: Asked) -> int:
        return sum(self._figure(figure) for figure in asked.figures)

    def _device(self, kind: str, own: bool) -> int:
        return sum(self._figure(Figure(kind, backend, own)) for backend in self._backends)

    @property
    def cpu_time_total_ns(self) -> int:
        """Time on the host, ns."""
        return self._figure(Figure("time", HOST_BACKEND))

    @property
    def self_cpu_time_total_ns(self) -> int:
        """Time on the host that nothing inside took, ns."""
        return self._figure(Figure("time", HOST_BACKEND, own=True))

    @property
    def device_time_total_ns(self) -> int:
        """Time of the device work that belongs to it or to something inside, ns; all backends together."""
        return self._device("time", own=False)

    @property
    def self_device_time_total_ns(self) -> int:
        """Time of the device work that belongs to it alone, ns; all backends together."""
        return self._device("time", own=True)

    @property
    def cpu_time_total(self) -> float:
        """`cpu_time_total_ns` in us."""
        return self.cpu_time_total_ns / 1000

    @property
    def self_cpu_time_total(self) -> float:
        """`self_cpu_time_total_ns` in us."""
        return self.self_cpu_time_total_ns / 1000

    @property
    def device_time_total(self) -> float:
        """`device_time_total_ns` in us."""
        return self.device_time_total_ns / 1000

    @property
    def self_device_time_total(self) -> float:
        """`self_device_time_total_ns` in us."""
        return self.self_device_time_total_ns / 1000

    @property
    def cpu_time(self) -> float:
        """Time on the host per call, us."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Time on devices per call, us."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cpu_memory_usage(self) -> int:
        """Host memory allocated less what was freed, bytes."""
        return self._figure(Figure("memory", HOST_BACKEND))

    @property
    def self_cpu_memory_usage(self) -> int:
        """`cpu_memory_usage` without what is inside."""
        return self._figure(Figure("memory", HOST_BACKEND, own=True))

    @property
    def device_memory_usage(self) -> int:
        """Device memory allocated less what was freed, bytes."""
        return self._device("memory", own=False)

    @property
    def self_device_memory_usage(self) -> int:
        """`device_memory_usage` without what is inside."""
        return self._device("memory", own=True)

    def __getattr__(self, name: str) -> Any:
        text = name.removesuffix("_str")
        asked = None if name.startswith("_") else asked_of(text, self._backends)
        if asked is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = self._sum(asked)
        if "memory" in text or text == "flops":
            return value
        time_ns = (value / self.count if self.count else 0.0) if asked.per_call else value
        return time_text(time_ns) if name.endswith("_str") else time_ns / 1000


RowT = TypeVar("RowT", bound=Figured)


class Listing(Sequence[RowT]):
    """A list whose rows are objects only while somebody looks at them.

    Attributes:
        figures: where the figures come from.
    """

    figures: Figures

    @property
    @abstractmethod
    def place(self) -> Longs:
        """(r,) int64, place in `figures.events` of the event that each row is, or is the first of."""

    @abstractmethod
    def _row(self, number: int) -> RowT:
        """Return a row as an object."""

    @abstractmethod
    def column(self, figure: Figure) -> Longs:
        """Return one figure of every row: (r,) int64, ns or bytes."""

    @abstractmethod
    def shapes(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each row's shapes, (r,), and their texts; None: rows have none."""

    @abstractmethod
    def overloads(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each row's overload name, (r,), and the names; None: rows have none."""

    @abstractmethod
    def stack_of(self, row: int) -> Sequence[str]:
        """Return the Python stack that a row shows."""

    @property
    @abstractmethod
    def counts(self) -> Longs:
        """(r,) int64, number of events of each row."""

    def __len__(self) -> int:
        return len(self.place)

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowT]: ...
    def __getitem__(self, index: int | slice) -> RowT | list[RowT]:
        found = range(len(self))[index]
        return self._row(found) if isinstance(found, int) else [self._row(number) for number in found]

    def __iter__(self) -> Iterator[RowT]:
        return map(self._row, range(len(self)))

    def __str__(self) -> str:
        return self.table()

    def asked(self, asked: Asked | None) -> npt.NDArray[Any]:
        """Return what a name asks for, of every row: (r,)."""
        if asked is None:
            return self.counts
        total = sum((self.column(figure) for figure in asked.figures), np.zeros(len(self), dtype=np.int64))
        return total / np.maximum(self.counts, 1) if asked.per_call else total

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of all self times on the host, us."""
        return self.figures.total(Figure("time", HOST_BACKEND, own=True)) / 1000

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        device_spans: bool = True,
    ) -> str:
        """Return the rows as a table of plain text, as torch's `EventList.table`.

        Args:
            sort_by: name of a figure, greatest first; None: as they stand.
            row_limit: greatest number of rows; -1: all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: letters; None: no limit.
            header: a line above the table.
            top_level_events_only: leave out what ran inside something else.
            time_unit: "s", "ms" or "us" for all times; None: each in its own.
            device_spans: list the spans of ranges on devices, as torch does; they last from a range's first work to its last,
                idle time included.

        Raises:
            UsageError: `sort_by` is no figure, or `time_unit` no unit; the message lists those that there are.
        """
        order = np.arange(len(self))
        if sort_by is not None:
            order = np.argsort(-self.asked(sort_key(sort_by, self.figures.backends)), kind="stable")
        if top_level_events_only:
            order = order[self.figures.parent[self.place[order]] < 0]
        if not device_spans:
            order = order[~self.is_device_span[order]]
        return table_of(
            self,
            order if row_limit < 0 else order[:row_limit],
            widths=Widths(max_name_column_width, max_shapes_column_width, max_src_column_width),
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    @property
    def is_device_span(self) -> Bools:
        """(r,) bool, which rows are spans of ranges on devices, and no work."""
        spans: Bools = self.figures.is_annotation[self.place] & (self.place >= self.figures.first_device)
        return spans

    def _repr_html_(self) -> str:
        """Return the first hundred rows as a table for a notebook, those with the most device time, then host time, first."""
        most = [Figure("time", backend, own=True) for backend in self.figures.backends]
        device = sum((self.column(figure) for figure in most), np.zeros(len(self), dtype=np.int64))
        own = self.column(Figure("time", HOST_BACKEND, own=True))
        return html_of(self, np.lexsort((-own, -device))[:_IN_A_NOTEBOOK])
