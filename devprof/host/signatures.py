"""`Signatures`: what the inputs of a range look like, as one number in the hot path and as JSON afterwards.

Most ranges look like one before: a range keeps the number of its signature, and each distinct signature is put into words once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

__all__ = ["InputTexts", "Signatures"]

MAX_TEXT = 256
"""Letters of a text input that are kept."""
MAX_ITEMS = 64
"""Items of a list input that are looked at."""
MAX_DEPTH = 2
"""Lists within lists that are looked into."""
MAX_DIMS = 64
"""Sizes of a shape that are looked at."""
MAX_KEPT = 4096
"""Distinct signatures that are kept as objects; then they become one text."""

_PLAIN = frozenset({int, float, bool, complex, str, type(None)})
_NUMBERS = frozenset({int, float, bool, complex})
_UNREADABLE = ((None, "?"),)
_MOST = 2**63 - 1
# Kineto writes the C++ names of torch's dtypes; every framework's dtype of that kind gets the same word
_TYPES = {
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "bool": "bool",
}


class InputTexts(NamedTuple):
    """The three items that Kineto's traces have for inputs, each a JSON array with one entry per input.

    Attributes:
        dims: "Input Dims": shapes; [] for what has none.
        types: "Input type": the element's type, "Scalar", "TensorList", "ScalarList" or "".
        concrete: "Concrete Inputs": plain values as text, "" for what has a shape.
    """

    dims: str
    types: str
    concrete: str


class Signatures:
    """Signatures that one thread has seen, by number. `number` is called by that thread only."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._first = 0
        self._written: list[str] = []
        self._writing = threading.RLock()

    def copied(self) -> Signatures:
        """Return what has been seen so far, for another thread."""
        copy = Signatures()
        with self._writing:
            copy._numbers, copy._first, copy._written = dict(self._numbers), self._first, self._written[:]
        return copy

    def number(self, inputs: Sequence[object]) -> int:
        """Return the number of what `inputs` look like. Keeps none of them; never raises."""
        try:
            key = tuple([_look(value) for value in inputs])
            found = self._numbers.get(key)
            return self._add(key) if found is None else found
        except Exception:  # noqa: BLE001  # whatever a stranger's `shape` or `__hash__` does, the program goes on
            found = self._numbers.get(_UNREADABLE)
            return self._add(_UNREADABLE) if found is None else found

    def texts(self) -> list[InputTexts]:
        """Return the words for every number given out, in order."""
        written = "\n".join([*self._written, _in_words(self._numbers)]) if self._numbers else "\n".join(self._written)
        lines = written.split("\n") if written else []
        return [InputTexts(*lines[at : at + 3]) for at in range(0, len(lines), 3)]

    def _add(self, key: tuple[Any, ...]) -> int:
        if len(self._numbers) >= MAX_KEPT:
            with self._writing:
                self._written.append(_in_words(self._numbers))
                self._first += len(self._numbers)
                self._numbers = {}
        # a stranger's `__eq__` may find now what it did not find before: then that one's number stands
        return self._numbers.setdefault(key, self._first + len(self._numbers))


def _look(value: Any, depth: int = MAX_DEPTH) -> tuple[Any, Any]:
    kind = type(value)
    if kind in _PLAIN:
        return kind, value[:MAX_TEXT] if kind is str else value
    if kind is list or kind is tuple:
        # some lists that hold each other are few objects and endless when looked into
        return (list, tuple([_look(item, depth - 1) for item in value[:MAX_ITEMS]])) if depth else (None, "list")
    try:
        shape, dtype = value.shape, value.dtype
    except Exception:  # noqa: BLE001  # a property of a stranger
        return None, kind.__name__
    return shape if isinstance(shape, tuple) and len(shape) <= MAX_DIMS else tuple(islice(shape, MAX_DIMS)), dtype


def _in_words(numbers: dict[tuple[Any, ...], int]) -> str:
    # JSON has no bare line breaks, so they can part the texts
    return "\n".join("\n".join(_signature_in_words(key)) for key in numbers)


def _signature_in_words(key: tuple[Any, ...]) -> tuple[str, str, str]:
    import json  # loaded for a result, not for a range

    seen = [_input_in_words(first, second) for first, second in key]
    dims, types, concrete = ([part[i] for part in seen] for i in range(3))
    return json.dumps(dims), json.dumps(types), json.dumps(concrete)


def _input_in_words(first: Any, second: Any) -> tuple[list[Any], str, str]:
    if isinstance(first, tuple):
        return _dims(first), _type_name(second), ""
    if first is list:
        inside = [_input_in_words(*item) for item in second]
        if any(isinstance(kind, tuple) for kind, _ in second):
            return [dims for dims, _, _ in inside], "TensorList", ""
        is_scalars = bool(second) and all(kind in _NUMBERS for kind, _ in second)
        return [], "ScalarList" if is_scalars else "", "[" + ", ".join(text for *_, text in inside) + "]"
    if first is None:
        return [], second, ""
    return [], "Scalar" if first in _NUMBERS else "", "" if second is None else _text(second)


def _dims(shape: tuple[Any, ...]) -> list[int]:
    try:
        return [size if abs(size) <= _MOST else -1 for size in map(int, shape)]
    except Exception:  # noqa: BLE001  # symbolic sizes have no number
        return [-1] * len(shape)


def _type_name(dtype: object) -> str:
    text = _text(dtype).rpartition(".")[2]
    return _TYPES.get(text, text)


def _text(value: object) -> str:
    try:
        return str(value)[:MAX_TEXT]
    except Exception:  # noqa: BLE001  # a stranger's `__str__`, and Python's own for a number of very many digits
        return "?"
