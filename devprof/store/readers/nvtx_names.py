"""What the text of an NVTX range says, where torch or devprof wrote it.

Source: torch's `emit_nvtx` names an op's range ``NAME, seq = 5, op_id = 12, sizes = [[2, 3]], input_op_ids = [...]``, each part
only where it is known.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["RangeText", "read_range_text"]

_PARTS = re.compile(
    r"(?P<name>.*?)"
    r"(?:, seq ?= ?(?P<sequence>\d{1,18}))?"
    r"(?:, op_id ?= ?(?P<op>\d{1,18}))?"
    r"(?:, sizes ?= ?(?P<sizes>\[[\[\]\d, ]*\]))?"
    r"(?:, input_op_ids ?= ?(?P<inputs>\[[\[\]()\d, ]*\]))?",
    re.DOTALL,
)
_OP_PREFIX = "aten::"
_LONGEST = 8192
"""Texts beyond this are taken as they are: no op's range is that long, and looking for parts takes time that grows faster."""


class RangeText(NamedTuple):
    """What a range's text says.

    Attributes:
        name: the name of the op, or the whole text.
        is_op: whether it is an op of a framework, else a range that a user named.
        sequence: sequence number, or None.
        op_id: torch's number of the op, or None.
        sizes: shapes of the inputs as JSON text, or None.
        inputs: ops that made the inputs, as the text has them, or None.
    """

    name: str
    is_op: bool
    sequence: int | None = None
    op_id: int | None = None
    sizes: str | None = None
    inputs: str | None = None


def read_range_text(text: str) -> RangeText:
    """Return what a range's text says."""
    found = _PARTS.fullmatch(text) if "=" in text and len(text) <= _LONGEST else None
    if found is None or not any((found["sequence"], found["op"], found["sizes"])):
        return RangeText(text, text.startswith(_OP_PREFIX))
    return RangeText(
        found["name"], True, _number(found["sequence"]), _number(found["op"]), found["sizes"], found["inputs"]
    )


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
