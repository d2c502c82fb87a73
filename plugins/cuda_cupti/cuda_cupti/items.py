"""The args of a slice, a column per key; a key is there only for the rows that have it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.model import MetadataColumn, MetadataKind

__all__ = ["Items"]


class Items:
    """Metadata columns under construction, in Kineto's order of keys."""

    def __init__(self) -> None:
        """Begin without any."""
        self.columns: dict[str, MetadataColumn] = {}

    def ints(self, key: str, values: npt.NDArray[np.integer], present: npt.NDArray[np.bool_] | None = None) -> None:
        """Add whole numbers, (n,); what does not fit int64 is left out."""
        if values.dtype == np.uint64:
            fits = values < np.uint64(1 << 63)
            if not fits.all():
                values, present = np.where(fits, values, np.uint64(0)), fits if present is None else present & fits
        self._add(key, MetadataKind.INT, values.astype(np.int64), present)

    def floats(self, key: str, values: npt.NDArray[np.float64], present: npt.NDArray[np.bool_] | None = None) -> None:
        """Add numbers, (n,)."""
        self._add(key, MetadataKind.FLOAT, values, present)

    def lists(self, key: str, values: list[npt.NDArray[np.integer]]) -> None:
        """Add lists of whole numbers, a column, (n,), for each place in the list."""
        self._add(key, MetadataKind.INT_LIST, np.stack(values, axis=1).astype(np.int64), None)

    def texts(self, key: str, values: npt.NDArray[np.int32]) -> None:
        """Add texts as indices into the batch's table, (n,)."""
        self._add(key, MetadataKind.STRING, values, None)

    def _add(
        self, key: str, kind: MetadataKind, values: npt.NDArray[np.generic], present: npt.NDArray[np.bool_] | None
    ) -> None:
        if present is None or present.all():
            self.columns[key] = MetadataColumn(kind, values)
        elif present.any():
            self.columns[key] = MetadataColumn(kind, values, present)
