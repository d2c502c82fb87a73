"""From a completed buffer to its records, a kind at a time.

Reads only the bytes that CUPTI declared valid. A kind that the library's layout does not have, or a record that is cut short,
ends the buffer: what lies behind it cannot be found, and is counted, not guessed. Every byte is either in a record or lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from cuda_cupti.layouts import ActivityKind, Layout
from cuda_cupti.rows import Rows, joined
from cuda_cupti.walk import Walk, walk

__all__ = ["NAMED_KINDS", "Records", "TextAt", "columns_of", "decode", "merged"]

TextAt = Callable[[int], bytes | None]
"""Returns the C string at an address, without its NUL, or None where nothing can be read there. Never asked for address 0."""

NAMED_KINDS = (ActivityKind.CONCURRENT_KERNEL, ActivityKind.KERNEL, ActivityKind.DEVICE)
"""Kinds whose field ``name`` is read."""

_AT_ONCE = 2048
"""Records whose fields are copied together, so that they are in the processor's cache from the first field to the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The records of one buffer, or of several.

    Attributes:
        of: by kind, its records in the buffer's order, a column per field of `Layout.dtype`; memory of their own. A kind
            without records has no entry.
        text: by kind of `NAMED_KINDS`, (n,) int32: which of `texts` each record's ``name`` points to.
        texts: distinct texts, as they are in the library (mangled); ``""`` for a NULL pointer and for one that cannot be read.
        n_bytes: valid bytes that were given.
        lost_bytes: of these, the bytes at the end that belong to no record that could be read.
        stops: why the walk ended early, a phrase per buffer that it did in.
    """

    of: Mapping[int, Rows] = field(default_factory=dict)
    text: Mapping[int, npt.NDArray[np.int32]] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    n_bytes: int = 0
    lost_bytes: int = 0
    stops: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.of.values()))


def decode(raw: bytes | bytearray | memoryview, layout: Layout, text_at: TextAt) -> Records:
    """Return the records of one completed buffer, copied out of it.

    Each distinct pointer is dereferenced once. Call it before the buffer is given back and before modules can be unloaded: the
    texts belong to CUPTI. Any thread.

    Args:
        raw: exactly the valid bytes.
        layout: how long the library's records are.
        text_at: reads a C string.
    """
    view = memoryview(raw).cast("B")
    of, found = columns_of(view, layout)
    texts = _Texts(text_at)
    text: dict[int, npt.NDArray[np.int32]] = {kind: texts.index(of[kind]["name"]) for kind in NAMED_KINDS if kind in of}
    lost = len(view) - found.used_bytes
    return Records(
        MappingProxyType(of),
        MappingProxyType(text),
        tuple(texts.number),
        len(view),
        lost,
        (found.stop,) if found.stop else (),
    )


def columns_of(raw: memoryview, layout: Layout) -> tuple[dict[int, Rows], Walk]:
    """Return the fields of a buffer's records by kind, pointers as they are, and how the walk went.

    Args:
        raw: exactly the valid bytes, format ``B``.
        layout: how long the library's records are.
    """
    found = walk(raw, layout)
    return {kind: _columns(raw, offsets, layout.dtype(kind)) for kind, offsets in found.offsets.items()}, found


def merged(parts: Iterable[Records]) -> Records:
    """Return the records of several buffers of one library as one, in the order given.

    Raises:
        ValueError: two parts have records of one kind with different fields.
    """
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    number: dict[str, int] = {}
    tables = [_renumbered(part.texts, number) for part in parts]
    of = {kind: joined([part.of[kind] for part in parts if kind in part.of]) for kind in _kinds(p.of for p in parts)}
    text = {
        kind: np.concatenate([table[p.text[kind]] for p, table in zip(parts, tables, strict=True) if kind in p.text])
        for kind in _kinds(p.text for p in parts)
    }
    return Records(
        MappingProxyType(of),
        MappingProxyType(text),
        tuple(number),
        sum(part.n_bytes for part in parts),
        sum(part.lost_bytes for part in parts),
        tuple(stop for part in parts for stop in part.stops),
    )


def _columns(raw: memoryview, offsets: npt.NDArray[np.int64], dtype: np.dtype[np.void]) -> Rows:
    """Copy the fields of records out of a buffer; numpy checks every offset against the buffer's end."""
    n, stride, first = len(offsets), dtype.itemsize, int(offsets[0])
    names = [name for name in dtype.names or () if name != "kind"]
    columns = {name: np.empty(n, dtype[name]) for name in names}
    in_a_row = int(offsets[-1]) - first == stride * (n - 1)
    # one may begin at any 8 bytes: all strides are multiples of 8
    blocks = np.ndarray(((len(raw) - stride) // 8 + 1,), f"V{stride}", buffer=raw, strides=(8,))
    whole = np.frombuffer(raw, dtype, n, first) if in_a_row else None
    for low in range(0, n, _AT_ONCE):
        at = slice(low, low + _AT_ONCE)
        block = whole[at] if whole is not None else blocks[offsets[at] // 8].view(dtype)
        for name in names:
            columns[name][at] = block[name]
    return Rows(columns, n)


class _Texts:
    """The texts behind the pointers of one buffer, each read once."""

    def __init__(self, text_at: TextAt) -> None:
        self._text_at = text_at
        self._of_pointer: dict[int, int] = {0: 0}
        self.number: dict[str, int] = {"": 0}

    def index(self, pointers: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """Return which text each pointer points to, (n,)."""
        distinct, inverse = np.unique(pointers, return_inverse=True)
        return np.array([self._index(int(pointer)) for pointer in distinct], dtype=np.int32)[inverse]

    def _index(self, pointer: int) -> int:
        if pointer not in self._of_pointer:
            text = (self._text_at(pointer) or b"").decode("utf-8", "replace")
            self._of_pointer[pointer] = self.number.setdefault(text, len(self.number))
        return self._of_pointer[pointer]


def _renumbered(texts: tuple[str, ...], number: dict[str, int]) -> npt.NDArray[np.int32]:
    return np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int32)


def _kinds(tables: Iterable[Mapping[int, object]]) -> list[int]:
    return sorted({kind for table in tables for kind in table})
