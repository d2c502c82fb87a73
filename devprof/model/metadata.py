"""`MetadataColumn`: one typed metadata key over the rows of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

__all__ = ["MetadataColumn", "MetadataKind"]


class MetadataKind(IntEnum):
    """Type of a metadata column; the numbers are shared with the native side."""

    INT = 0
    """int64, printed as a JSON number."""
    FLOAT = 1
    """float64, printed as a JSON number; non-finite values are left out and counted."""
    BOOL = 2
    """uint8, printed as true or false."""
    STRING = 3
    """int32 index into the batch's string table, printed as JSON text."""
    INT_LIST = 4
    """int64 of shape (n, k), printed as a JSON array (grid, block)."""


_DTYPES: dict[MetadataKind, npt.DTypeLike] = {
    MetadataKind.INT: np.int64,
    MetadataKind.FLOAT: np.float64,
    MetadataKind.BOOL: np.uint8,
    MetadataKind.STRING: np.int32,
    MetadataKind.INT_LIST: np.int64,
}


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """Values of one metadata key.

    Attributes:
        kind: type of the values.
        values: shape (n,), or (n, k) for `INT_LIST`; dtype as `kind` says.
        present: shape (n,), bool: which rows carry the key; None means all.
    """

    kind: MetadataKind
    values: npt.NDArray[np.generic]
    present: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        want_ndim = 2 if self.kind is MetadataKind.INT_LIST else 1
        values = np.ascontiguousarray(self.values, dtype=_DTYPES[self.kind])
        if values.ndim != want_ndim:
            raise ValueError(f"{self.kind.name} metadata needs {want_ndim} dimension(s), found shape {values.shape}")
        object.__setattr__(self, "values", values)
        if self.present is not None:
            present = np.ascontiguousarray(self.present, dtype=np.bool_)
            if present.shape != values.shape[:1]:
                raise ValueError(f"present has shape {present.shape}, expected {values.shape[:1]}")
            object.__setattr__(self, "present", present)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: npt.NDArray[np.generic]) -> MetadataColumn:
        """Return the column for the given rows (a mask or indices)."""
        return MetadataColumn(self.kind, self.values[rows], None if self.present is None else self.present[rows])
