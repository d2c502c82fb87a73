"""Text of JSON that every parser takes: no NaN, no bare control characters, no lone surrogates, no key twice."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring

import numpy as np

__all__ = ["WrittenTexts", "clean", "json_text", "quoted", "verbatim"]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_MOST_DEPTH = 100  # deeper than any fact is; below Python's own limit, so that a cycle ends as a text
_MOST_BITS = 1024  # of a whole number; Python refuses to print very long ones
_MOST_CHARACTERS = 1 << 20  # of texts that are kept quoted


def quoted(text: str) -> str:
    """Return a text as a JSON string; what is not ASCII stays as it is, a lone surrogate becomes U+FFFD."""
    written = encode_basestring(text)
    return clean(written)


def clean(text: str) -> str:
    """Return a text that has UTF-8 bytes: with U+FFFD for each lone surrogate."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def json_text(value: object) -> str:
    """Return a value as JSON text on one line, with a blank after each colon: HTA finds ``"rank": 3`` in a file by that.

    A number that is not finite becomes a string, so does what JSON has no word for. Of two keys that read the same the later
    one holds.
    """
    return json.dumps(_plain(value, 0), ensure_ascii=False, allow_nan=False)


def verbatim(text: str) -> str:
    """Return a text that claims to be JSON as it is; where it is not strict JSON, as a JSON string."""
    try:
        value = _STRICT.decode(text)
    except (ValueError, RecursionError):
        return quoted(text)
    if _SURROGATE_ESCAPE.search(text):
        return json_text(value)
    return clean(text)


class WrittenTexts(dict[int, str]):
    """Texts of a table as they are written, by their number; made when asked for.

    It forgets what it made when that grows large, so that its size does not depend on the trace's.
    """

    def __init__(self, texts: Sequence[str], write: Callable[[str], str]) -> None:
        super().__init__()
        self._texts = texts
        self._write = write
        self._characters = 0

    def __missing__(self, number: int) -> str:
        written = self._write(self._texts[number])
        self[number] = written
        self._characters += len(written) + 100  # and what Python itself needs for an entry
        return written

    def of(self, numbers: Iterable[int]) -> list[str]:
        """Return the texts with these numbers."""
        if self._characters > _MOST_CHARACTERS:
            self.clear()
            self._characters = 0
        return list(map(self.__getitem__, numbers))


def _plain(value: object, depth: int) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if int(value).bit_length() <= _MOST_BITS else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return clean(value)
    if depth < _MOST_DEPTH:
        if isinstance(value, Mapping):
            return {str(_plain(str(key), depth)): _plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset | np.ndarray):
            return [_plain(item, depth + 1) for item in value]
    return str(_plain(str(value), depth))


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


_STRICT = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_unique)
