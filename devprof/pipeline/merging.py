"""`merged`: several batches as one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.errors import UsageError
from devprof.model import ActivityBatch, MetadataColumn, MetadataKind
from devprof.model.columns import COLUMNS

__all__ = ["merged"]


def merged(batches: Sequence[ActivityBatch]) -> ActivityBatch:
    """Return the records of all batches, end to end, in one batch.

    Args:
        batches: at least one, all on one clock, without counters.

    Raises:
        UsageError: two batches hold values of different kinds under one key.
    """
    if len(batches) == 1:
        return batches[0]
    first_text = np.cumsum([0, *(len(batch.strings) for batch in batches)])
    columns: dict[str, Any] = {
        key: np.concatenate([getattr(batch, key) for batch in batches]) for key in COLUMNS if key != "name"
    }
    columns["name"] = np.concatenate(
        [batch.name + np.int32(first) for batch, first in zip(batches, first_text[:-1], strict=True)]
    )
    keys = dict.fromkeys(key for batch in batches for key in batch.metadata)
    return ActivityBatch(
        tuple(itertools.chain.from_iterable(batch.strings for batch in batches)),
        **columns,
        metadata={key: _column(key, batches, first_text) for key in keys},
        clock=batches[0].clock,
    )


def _column(key: str, batches: Sequence[ActivityBatch], first_text: npt.NDArray[np.int64]) -> MetadataColumn:
    given = [batch.metadata.get(key) for batch in batches]
    shapes = {(column.kind, column.values.shape[1:], column.values.dtype) for column in given if column is not None}
    if len(shapes) > 1:
        kinds = ", ".join(sorted(kind.name for kind, _, _ in shapes))
        raise UsageError(f"batches to merge hold {kinds} under {key!r}; expected one kind and length per key")
    ((kind, shape, dtype),) = shapes
    values, present = [], []
    for batch, column, first in zip(batches, given, first_text[:-1], strict=True):
        if column is None:
            values.append(np.zeros((len(batch), *shape), dtype=dtype))
            present.append(np.zeros(len(batch), dtype=np.bool_))
            continue
        values.append(column.values + first if kind is MetadataKind.STRING else column.values)
        present.append(np.ones(len(batch), dtype=np.bool_) if column.present is None else column.present)
    return MetadataColumn(kind, np.concatenate(values), np.concatenate(present))
