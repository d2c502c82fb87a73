"""Shapes of inputs, from the text that a trace keeps to what a table shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from devprof.analysis.columns import Longs, distinct
from devprof.store import ItemKind, Trace

__all__ = ["DIMS", "plain", "shape_numbers", "structured", "text_numbers"]

DIMS = "Input Dims"
_TEXTS = (ItemKind.STRING, ItemKind.JSON)


def text_numbers(trace: Trace, key: str, events: Longs) -> Longs:
    """Return the text number of an item for each event: (e,) int64, -1 where an event has none."""
    column = trace.items.get(key)
    if column is None or column.kind not in _TEXTS:
        return np.full(len(events), -1, dtype=np.int64)
    return column.dense(len(trace), -1)[events].astype(np.int64)


def structured(text: str | None) -> list[Any]:
    """Return the shapes of all inputs; of a list of tensors a list of shapes. Text that is no JSON list has none."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def plain(shapes: Sequence[Any]) -> list[list[int]]:
    """Return one shape per input, as torch's `input_shapes`: empty for a list of tensors and for what is no tensor."""
    return [_one(shape) for shape in shapes]


def _one(shape: Any) -> list[int]:
    if not isinstance(shape, list) or any(isinstance(size, list) for size in shape):
        return []
    return shape


def shape_numbers(trace: Trace, events: Longs) -> tuple[Longs, list[str]]:
    """Number the shapes of inputs as a table shows them.

    Returns:
        (e,) int64 numbers, and the text of each; 0 is "[]", which is also what events without shapes have.
    """
    numbers = text_numbers(trace, DIMS, events)
    texts: dict[str, int] = {"[]": 0}
    occurring, place = distinct(numbers, len(trace.strings))
    shown = [str(plain(structured(trace.strings[number]))) if number >= 0 else "[]" for number in occurring.tolist()]
    coded = np.array([texts.setdefault(text, len(texts)) for text in shown], dtype=np.int64)
    return coded[place], list(texts)
