"""JSON text that every parser takes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.export.strict_json import WrittenTexts, json_text, quoted, verbatim
from tests.unit.export.traces import strict


@given(st.text(st.characters(exclude_categories=())))
def test_a_quoted_text_reads_back_with_only_lone_surrogates_replaced(text: str) -> None:
    assert strict(quoted(text)) == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"é": [1, True, None, 0.1, "a"]}, '{"é": [1, true, null, 0.1, "a"]}'),
        ([float("nan"), float("inf"), -float("inf")], '["nan", "inf", "-inf"]'),
        ({1: 2, "1": 3, None: 4}, '{"1": 3, "None": 4}'),
        ((np.int64(3), np.float32(0.5), np.bool_(True), np.array([1, 2])), "[3, 0.5, true, [1, 2]]"),
        ([10**4300], f'["{hex(10**4300)}"]'),
        (b"\xff", "\"b'\\\\xff'\""),
    ],
)
def test_any_value_has_a_text(value: object, text: str) -> None:
    assert json_text(value) == text
    strict(text)


def test_a_value_that_holds_itself_ends_somewhere() -> None:
    value: list[object] = [1]
    value.append(value)
    strict(json_text(value))


@pytest.mark.parametrize("text", ["1", "[1, 2.50]", '{"a": {"b": []}}', ' "é" ', "1e400", "-0.0", "[\n1]"])
def test_json_stays_as_it_is(text: str) -> None:
    assert verbatim(text) == text


@pytest.mark.parametrize("text", ["", "NaN", "[Infinity]", '{"a":1,"a":2}', "{'a':1}", "[1,]", "1 2", '"\t"', "01"])
def test_what_is_not_strict_json_becomes_a_text(text: str) -> None:
    assert verbatim(text) == json.dumps(text)


def test_texts_are_made_once_until_they_take_too_much_room() -> None:
    asked: list[str] = []

    def write(text: str) -> str:
        asked.append(text)
        return text * 400_000

    texts = WrittenTexts(["a", "b", "c"], write)
    assert [text[:1] for text in texts.of([0, 1, 0])] == ["a", "b", "a"]
    assert texts.of([1])[0][:2] == "bb"
    assert asked == ["a", "b"]
    texts.of([2])
    texts.of([0])
    assert asked == ["a", "b", "c", "a"]
