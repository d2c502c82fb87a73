"""`MetadataColumn`: one typed metadata key over the rows of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from devprof.model.fitting import fitted

__all__ = ["MetadataColumn", "MetadataKind"]


class MetadataKind(IntEnum):
    """Type of a metadata column; the numbers are shared with the native side."""

    INT = 0
    """int64, printed as a JSON number."""
    FLOAT = 1
    """float64, printed as a JSON number; non-finite values are left out and counted."""
    BOOL = 2
    """uint8, 0 or 1, printed as true or false."""
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


@dataclass(frozen=True, slots=True, eq=False)
class MetadataColumn:
    """Values of one metadata key. Immutable; arrays that fit already are taken over, not copied.

    Attributes:
        kind: type of the values.
        values: shape (n,), or (n, k) for `INT_LIST`; dtype as `kind` says.
        present: shape (n,), bool: which rows carry the key; None means all.

    Raises:
        ValueError: a shape is wrong, or a value does not fit the kind's dtype.
    """

    kind: MetadataKind
    values: npt.NDArray[np.generic]
    present: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        kind = MetadataKind(self.kind)
        values = np.asarray(self.values)
        if values.ndim != (2 if kind is MetadataKind.INT_LIST else 1):
            shape = "(n, k)" if kind is MetadataKind.INT_LIST else "(n,)"
            raise ValueError(f"{kind.name} metadata has shape {values.shape}, expected {shape}")
        values = fitted(f"{kind.name} metadata", values, _DTYPES[kind])
        if kind is MetadataKind.BOOL and values.size and values.max() > 1:
            raise ValueError(f"BOOL metadata holds {values.max()}, expected 0 or 1")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "values", values)
        if self.present is not None:
            present = fitted("present", self.present, np.bool_)
            if present.shape != values.shape[:1]:
                raise ValueError(f"present has shape {present.shape}, expected {values.shape[:1]}")
            object.__setattr__(self, "present", present)

    def __len__(self) -> int:
        return len(self.values)

    def has(self, row: int) -> bool:
        """Say whether a row carries the key."""
        return self.present is None or bool(self.present[row])

    def take(self, rows: npt.NDArray[np.generic] | slice) -> MetadataColumn:
        """Return the column for the given rows (a mask, indices or a slice)."""
        return MetadataColumn(self.kind, self.values[rows], None if self.present is None else self.present[rows])
