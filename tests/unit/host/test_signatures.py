"""Inputs in words: Kineto's three items, whatever the inputs are."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from devprof.host.signatures import MAX_DIMS, MAX_ITEMS, MAX_KEPT, MAX_TEXT, InputTexts, Signatures


class Shaped:
    def __init__(self, shape: Any, dtype: Any = "float32") -> None:
        self.shape = shape
        self.dtype = dtype


def words(*inputs: object) -> tuple[Any, Any, Any]:
    signatures = Signatures()
    assert signatures.number(inputs) == 0
    (texts,) = signatures.texts()
    return json.loads(texts.dims), json.loads(texts.types), json.loads(texts.concrete)


@pytest.mark.parametrize(
    ("value", "dims", "kind", "concrete"),
    [
        (np.zeros((2, 3), np.float32), [2, 3], "float", ""),
        (np.zeros((), np.int64), [], "long int", ""),
        (np.zeros(4, np.bool_), [4], "bool", ""),
        (Shaped((2,), "torch.bfloat16"), [2], "c10::BFloat16", ""),
        (Shaped([2, 5], "vendor.float8"), [2, 5], "float8", ""),
        (3, [], "Scalar", "3"),
        (2.5, [], "Scalar", "2.5"),
        (True, [], "Scalar", "True"),
        (1j, [], "Scalar", "1j"),
        ("mean", [], "", "mean"),
        ('a "quoted"\nline', [], "", 'a "quoted"\nline'),
        ("x" * (MAX_TEXT + 1), [], "", "x" * MAX_TEXT),
        (None, [], "", ""),
        ([1, 2], [], "ScalarList", "[1, 2]"),
        ((1, 2.0), [], "ScalarList", "[1, 2.0]"),
        ([], [], "", "[]"),
        (["a"], [], "", "[a]"),
        ([Shaped((1,)), Shaped((2, 2))], [[1], [2, 2]], "TensorList", ""),
        (list(range(MAX_ITEMS + 5)), [], "ScalarList", str(list(range(MAX_ITEMS)))),
        ({"a": 1}, [], "dict", ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_input_has_a_shape_a_type_and_a_value(value: object, dims: Any, kind: str, concrete: str) -> None:
    assert words(value) == ([dims], [kind], [concrete])


def test_values_that_are_equal_and_of_another_type_are_told_apart() -> None:
    signatures = Signatures()
    numbers = [signatures.number((value,)) for value in (1, 1.0, True, 1)]
    assert numbers == [0, 1, 2, 0]
    assert [texts.concrete for texts in signatures.texts()] == ['["1"]', '["1.0"]', '["True"]']


def test_inputs_that_look_alike_are_put_into_words_once() -> None:
    signatures = Signatures()
    assert {signatures.number((Shaped((2, n % 2)), "mode")) for n in range(100)} == {0, 1}
    assert signatures.texts() == [InputTexts(f"[[2, {n}], []]", '["float", ""]', '["", "mode"]') for n in range(2)]


def test_more_signatures_than_are_kept_as_objects_have_all_their_words() -> None:
    signatures = Signatures()
    n = 2 * MAX_KEPT + 3
    assert [signatures.number((Shaped((size,)),)) for size in range(n)] == list(range(n))
    assert len(signatures._numbers) == 3
    assert [texts.dims for texts in signatures.texts()] == [f"[[{size}]]" for size in range(n)]


class _NoHash:
    __hash__ = None  # type: ignore[assignment]


class _Raises:
    @property
    def shape(self) -> Any:
        raise RuntimeError("not now")


class _NoSize:
    def __int__(self) -> int:
        raise TypeError("symbolic")


def test_inputs_that_cannot_be_looked_at_do_no_harm() -> None:
    assert words(_Raises(), object()) == ([[], []], ["_Raises", "object"], ["", ""])
    assert words(Shaped((_NoSize(), 2))) == ([[-1, -1]], ["float"], [""])
    assert words(Shaped((2,), _NoHash())) == ([[]], ["?"], [""])
    assert words(Shaped(7)) == ([[]], ["?"], [""])


class _NoText:
    def __str__(self) -> str:
        raise RuntimeError("not now")


class _HashedOnce:
    """Can be looked for, and not be put down."""

    def __init__(self) -> None:
        self.count = 0

    def __hash__(self) -> int:
        self.count += 1
        if self.count > 1:
            raise RuntimeError("not again")
        return 1


def test_inputs_that_cannot_be_put_into_words_do_no_harm() -> None:
    assert words(Shaped((2,), _NoText())) == ([[2]], ["?"], [""])
    assert words(10**5000, 2) == ([[], []], ["Scalar", "Scalar"], ["?", "2"])  # more digits than Python writes
    assert words(Shaped((10**30, -(10**5000), 3))) == ([[-1, -1, 3]], ["float"], [""])
    assert words(Shaped((2,), _HashedOnce())) == ([[]], ["?"], [""])


def test_inputs_without_an_end_are_looked_at_so_far_only() -> None:
    assert words(Shaped(itertools.repeat(1))) == ([[1] * MAX_DIMS], ["float"], [""])
    assert words(Shaped((1,) * 10**5)) == ([[1] * MAX_DIMS], ["float"], [""])
    inner: list[object] = [7]
    for _ in range(6):
        inner = [inner] * MAX_ITEMS  # 64 to the power of 6 items, in 7 lists
    kinds = words(inner)[1]
    assert kinds == [""]
    endless: list[object] = []
    endless.append(endless)
    assert words(endless) == ([[]], [""], ["[[]]"])


def test_nothing_given_out_is_nothing_in_words() -> None:
    assert Signatures().texts() == []
