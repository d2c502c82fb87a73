"""Times and numbers of a Chrome trace, exact: microseconds with a fraction become whole nanoseconds without a float's error."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.store.readers.json_chunks import Literal, Times

__all__ = ["nanoseconds", "nanoseconds_of", "whole_number"]

_NEAR = 2.0**43
"""Microseconds below which a float tells nanoseconds apart: half of its last place is less than half a nanosecond. Times that
Kineto writes as of its base, which is a quarter of a year old at most, are below it; times as of 1970 are not."""

_FARTHEST_NS = 2**62
_PLAIN = re.compile(rb"(-?)(\d{1,18})(?:\.(\d+))?")


def nanoseconds(values: Sequence[Any]) -> Times:
    """Return times given in microseconds.

    Args:
        values: whole numbers, floats, texts, `Literal`s, JSON text in bytes-like objects, or None.
    """
    kinds = set(map(type, values))
    if kinds <= {float, type(None)}:
        return _of_floats(np.array(values, dtype=np.float64))  # None becomes a float that is no number
    if kinds == {int}:
        return _of_integers(values)
    if kinds <= {int, float, type(None)}:
        return _of_both(values)
    if not kinds & {str, bool, Literal, float, int, type(None)}:
        return _of_texts(list(map(bytes, values)))
    return _one_by_one(values)


def _one_by_one(values: Sequence[Any]) -> Times:
    ns = [nanoseconds_of(value) for value in values]
    sound = np.array([one is not None for one in ns], dtype=np.bool_)
    inexact = any(type(value) is float and abs(value) >= _NEAR for value in values)
    return Times(np.array([one or 0 for one in ns], dtype=np.int64), sound, inexact)


def _of_texts(texts: list[bytes]) -> Times:
    """Return times that are given as numbers' texts, those with as many digits together."""
    letters = np.array(texts, dtype="S").view(np.uint8).reshape(len(texts), -1)  # "S1" at least
    width = letters.shape[1]
    length = np.fromiter(map(len, texts), np.int64, len(texts))
    is_dot = letters == ord(".")
    dot = np.where(is_dot.any(axis=1), is_dot.argmax(axis=1), length)
    digits = letters - np.uint8(ord("0"))
    usual = ((digits <= 9) | (np.arange(width) == dot[:, None]) | (np.arange(width) >= length[:, None])).all(axis=1)
    # 16 digits of microseconds are times of this century; beyond them nanoseconds need more than 63 bits
    fits = (dot <= 15) | ((dot == 16) & (digits[:, 0] <= 3))
    usual &= (dot >= 1) & fits & ((length == dot) | (length > dot + 1))
    ns, sound = np.zeros(len(texts), dtype=np.int64), usual.copy()
    shapes = dot * (width + 1) + length
    for shape in np.unique(shapes[usual]).tolist():
        rows = np.flatnonzero(usual & (shapes == shape))
        ns[rows] = _digits(digits[rows], *divmod(shape, width + 1))
    odd = np.flatnonzero(~usual & (length > 0))
    if len(odd):
        times = _one_by_one([texts[at] for at in odd.tolist()])
        ns[odd], sound[odd] = times.ns, times.sound
    return Times(ns, sound)


def _digits(digits: npt.NDArray[np.uint8], dot: int, length: int) -> npt.NDArray[np.int64]:
    """Return the nanoseconds that rows of digits say: `dot` digits of microseconds, a dot, and a fraction up to `length`."""
    ns = np.zeros(len(digits), dtype=np.int64)
    for place in range(dot):
        ns = ns * 10 + digits[:, place]
    for place in range(dot + 1, dot + 4):
        ns = ns * 10 + (digits[:, place] if place < length else 0)
    if dot + 4 < length:
        ns += digits[:, dot + 4] >= 5
    return ns


def _of_floats(values: npt.NDArray[np.float64]) -> Times:
    near = np.abs(values) < _NEAR
    whole = np.floor(np.where(near, values, 0))
    ns = whole.astype(np.int64) * 1000 + np.rint((np.where(near, values, 0) - whole) * 1000).astype(np.int64)
    if near.all():
        return Times(ns, near)
    far = np.flatnonzero(~near & np.isfinite(values))
    each = [nanoseconds_of(value) for value in values[far].tolist()]
    ns[far] = [one or 0 for one in each]
    near[far] = [one is not None for one in each]
    return Times(ns, near, inexact=bool(len(far)))


def _of_integers(values: Sequence[int]) -> Times:
    try:
        us = np.array(values, dtype=np.int64)
    except OverflowError:
        us = np.array([value if abs(value) < _FARTHEST_NS else _FARTHEST_NS for value in values], dtype=np.int64)
    sound = np.abs(us) <= _FARTHEST_NS // 1000
    return Times(np.where(sound, us, 0) * 1000, sound)


def _of_both(values: Sequence[int | float]) -> Times:
    is_float = np.array([type(value) is float for value in values], dtype=np.bool_)
    is_integer = np.array([type(value) is int for value in values], dtype=np.bool_)
    ns, sound = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)
    inexact = False
    for mask, times in (
        (is_float, _of_floats(np.array([value for value in values if type(value) is float]))),
        (is_integer, _of_integers([value for value in values if type(value) is int])),
    ):
        ns[mask], sound[mask], inexact = times.ns, times.sound, inexact or times.inexact
    return Times(ns, sound, inexact)


def nanoseconds_of(value: Any) -> int | None:
    """Return one time given in microseconds, as `nanoseconds` takes them, or None where it is none."""
    if value is None or isinstance(value, bool):
        return None
    if type(value) is float and abs(value) < _NEAR:
        us = math.floor(value)
        return us * 1000 + round((value - us) * 1000)
    text = value.text if isinstance(value, Literal) else value
    if isinstance(text, int | float):
        text = repr(text)
    written = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
    if found := _PLAIN.fullmatch(written := written.strip(b' "')):
        sign, whole, fraction = found.groups(b"")
        ns = int(whole) * 1000 + int(fraction[:3].ljust(3, b"0")) + (fraction[3:4] >= b"5")
        return (-ns if sign else ns) if ns < _FARTHEST_NS else None
    return _by_decimal(written)


def _by_decimal(written: bytes) -> int | None:
    try:
        us = Decimal(written.decode("ascii"))
        if not us.is_finite() or us.adjusted() > 18:
            return None
        ns = int((us * 1000).to_integral_value(ROUND_HALF_UP))
    except (InvalidOperation, UnicodeDecodeError):
        return None
    return ns if abs(ns) < _FARTHEST_NS else None


def whole_number(value: Any) -> int | None:
    """Return an id as a whole number of 64 bits: also one that is written as text, or with a fraction of 0; else None."""
    if isinstance(value, str):
        try:
            value = int(value, 0) if len(value) < 24 else None
        except ValueError:
            return None
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return int(value) if isinstance(value, int) and -(2**63) <= value < 2**63 else None
