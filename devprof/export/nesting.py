"""Which rows of a trace need a closer look before their slices can be drawn, found out by native code in one pass."""

from __future__ import annotations

import ctypes
from ctypes import byref

import numpy as np
import numpy.typing as npt

from devprof.export.native_chunk import Views
from devprof.export.perfetto_abi import REFUSALS, RowFlag, Slices, TypeBit
from devprof.store import Trace

__all__ = ["Nesting"]

Mask = npt.NDArray[np.bool_]


class Nesting:
    """What is the matter with the rows of a trace.

    Attributes:
        looked_at: (rows,) bool: rows on which slices cross, or stand in another order than that of their starts.
        in_order: whether all rows have their slices in order of their starts, those that start together the longest first.
    """

    def __init__(self, native: ctypes.CDLL, trace: Trace, is_slice: Mask) -> None:
        """Look at a trace.

        Args:
            native: the library.
            trace: the trace.
            is_slice: (256,) bool, by number of `ActivityType`.
        """
        views = Views()
        shape = np.where(is_slice, np.uint8(TypeBit.SLICE), np.uint8(0))
        slices = Slices(
            events=len(trace),
            rows=len(trace.rows),
            type=views.column(trace.activity_type, np.uint8),
            row=views.column(trace.row, np.int32),
            start_ns=views.column(trace.start_ns, np.int64),
            end_ns=views.column(trace.end_ns, np.int64),
            shape=views.column(shape, np.uint8),
        )
        flags = np.zeros(len(trace.rows), dtype=np.uint8)
        refused = native.devprof_rows_mark(byref(slices), flags.ctypes.data)
        if refused:
            raise RuntimeError(f"the native writer refused a trace's rows: {REFUSALS.get(refused, refused)}")
        self.looked_at: Mask = flags != 0
        self.in_order = not (flags & RowFlag.OUT_OF_ORDER).any()
