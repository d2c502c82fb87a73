"""How the sink reads metadata: text that Kineto pasted together, and values of several types under one key."""

from __future__ import annotations

import ctypes
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.contract import NativeBuild
from devprof.native import build, load
from devprof.store import ItemKind, RawJson
from devprof.torch.sink_build import SINK
from devprof.torch.sink_columns import Typed
from devprof.torch.sink_items import ItemMaker

Read = list[tuple[str, str, str]]


@functools.cache
def library() -> ctypes.CDLL:
    source = next(path for path in SINK.sources if path.name == "sink_items.cpp")
    test = Path(__file__).parent / "support" / "sink_items_test.cpp"
    spec = NativeBuild(
        "sink-items-test",
        (test, source),
        headers=(source.with_suffix(".h"),),
        include_dirs=(source.parent,),
        needs_torch=False,
    )
    build(spec)
    found = load(spec)
    found.read_metadata.restype, found.read_metadata.argtypes = ctypes.c_char_p, (ctypes.c_char_p, ctypes.c_uint64)
    return found


def read(text: str) -> Read:
    """Return (kind, key, value) of everything in a metadata text."""
    raw = text.encode()
    said = library().read_metadata(raw, len(raw)).decode()
    return [tuple(line.split("\x1f")) for line in said.split("\x1e") if line]  # type: ignore[misc]


TEXTS: dict[str, Read] = {
    "": [],
    "   ": [],
    '"a": 1': [("int", "a", "1")],
    '"a": -12, "b": 0': [("int", "a", "-12"), ("int", "b", "0")],
    '"a":1,"b":2': [("int", "a", "1"), ("int", "b", "2")],
    '"a": 9223372036854775807': [("int", "a", "9223372036854775807")],
    '"a": 9223372036854775808': [("json", "a", "9223372036854775808")],
    '"a": 1.5, "b": -2e-3': [("float", "a", "1.5"), ("float", "b", "-0.002")],
    '"a": nan, "b": -inf': [("float", "a", "nan"), ("float", "b", "-inf")],
    '"a": 1e999': [("json", "a", "1e999")],
    '"a": 007': [("json", "a", "007")],
    '"a": true, "b": false, "c": null': [("bool", "a", "true"), ("bool", "b", "false"), ("null", "c", "1")],
    '"a": ': [],
    '"a": , "b": 3': [("null", "a", "1"), ("int", "b", "3")],
    '"a": "text"': [("text", "a", "text")],
    '"a": "", "b": 1': [("text", "a", ""), ("int", "b", "1")],
    '"a": "1"': [("text", "a", "1")],
    '"a": "x, y", "b": 1': [("text", "a", "x, y"), ("int", "b", "1")],
    '"a": "say "hi" now", "b": 1': [("text", "a", 'say "hi" now'), ("int", "b", "1")],
    '"a": "ends in a quote"", "b": 1': [("text", "a", 'ends in a quote"'), ("int", "b", "1")],
    '"a": "C:\\dir\\new", "b": 1': [("text", "a", "C:\\dir\\new"), ("int", "b", "1")],
    '"a": "was \\"escaped\\"", "b": 1': [("text", "a", 'was "escaped"'), ("int", "b", "1")],
    '"grid": [1, 2, 3], "b": [[], [4]]': [("json", "grid", "[1, 2, 3]"), ("json", "b", "[[], [4]]")],
    '"a": ["x, y", "]"], "b": {"c": [1]}': [("json", "a", '["x, y", "]"]'), ("json", "b", '{"c": [1]}')],
    '"a": ["x", "y"z"], "b": 1': [("json", "a", '["x", "y"z"]'), ("int", "b", "1")],
    '"a": ["x", "y"z"]': [("json", "a", '["x", "y"z"]')],
    '"a": [1, [2], "b": 1': [("json", "a", "[1, [2]"), ("int", "b", "1")],
    # as Kineto's CUPTI part prints a kernel and a copy
    '"device": 0, "stream": 7, "registers per thread": 32, "blocks per SM": 0.25, "grid": [1, 2, 3]': [
        ("int", "device", "0"),
        ("int", "stream", "7"),
        ("int", "registers per thread", "32"),
        ("float", "blocks per SM", "0.25"),
        ("json", "grid", "[1, 2, 3]"),
    ],
    '\n      "bytes": 4096,\n      "memory bandwidth (GB/s)": "N/A"\n    ': [
        ("int", "bytes", "4096"),
        ("text", "memory bandwidth (GB/s)", "N/A"),
    ],
    '"a key: with, marks": 3': [("int", "a key: with, marks", "3")],
    '"a": word, "b": 1': [("json", "a", "word"), ("int", "b", "1")],
    '"a": "open': [("text", "a", "open")],
    '"a': [],
    "no key at all": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_metadata_text_is_read_as_what_it_means(text: str) -> None:
    assert read(text) == TEXTS[text]


_plain = st.text(st.characters(codec="utf-8", exclude_characters='"\\\x00\x1e\x1f'))
_numbers = st.integers(-(2**63), 2**63 - 1)


@given(st.dictionaries(_plain.filter(bool), _plain | _numbers | st.lists(_numbers)))
def test_text_as_kineto_pastes_it_is_read_back(items: dict[str, Any]) -> None:
    pasted = ", ".join(f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in items.items())
    if any(
        isinstance(value, str) and json.dumps(value, ensure_ascii=False) != f'"{value}"' for value in items.values()
    ):
        pasted = ", ".join(
            f'"{key}": "{value}"' if isinstance(value, str) else f'"{key}": {value}' for key, value in items.items()
        )
    kinds = {str: "text", int: "int", list: "json"}
    expected = [(kinds[type(value)], key, str(value)) for key, value in items.items()]
    assert sorted(read(pasted)) == sorted(expected)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00\x1e\x1f"), max_size=60))
def test_any_text_is_read_without_harm(text: str) -> None:
    for kind, _key, value in read(text):
        assert kind == "null" or value in text.replace('\\"', '"').replace("\\\\", "\\") or kind in ("int", "float")


# --- columns ----------------------------------------------------------------------------------------------------------


def typed(kind: ItemKind, events: list[int], values: list[Any], dtype: Any) -> Typed:
    return Typed(int(kind), np.array(events, dtype=np.int64), np.array(values, dtype=dtype))


def values(texts: list[str], *parts: Typed, key: str = "key") -> tuple[ItemKind, list[Any]]:
    column = ItemMaker(texts).columns({key: parts})[key]
    return column.kind, [column.value(event, texts) for event in column.events.tolist()]


INTS = typed(ItemKind.INT, [0, 4], [1, -2], np.int64)
FLOATS = typed(ItemKind.FLOAT, [1], [0.5], np.float64)
BOOLS = typed(ItemKind.BOOL, [2], [1], np.uint8)
WORDS = typed(ItemKind.STRING, [3], [0], np.int32)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([INTS], (ItemKind.INT, [1, -2])),
        ([FLOATS], (ItemKind.FLOAT, [0.5])),
        ([BOOLS], (ItemKind.BOOL, [True])),
        ([WORDS], (ItemKind.STRING, ["word"])),
        ([INTS, FLOATS], (ItemKind.FLOAT, [1.0, 0.5, -2.0])),
        ([INTS, BOOLS], (ItemKind.JSON, ["1", "true", "-2"])),
        ([INTS, FLOATS, WORDS], (ItemKind.JSON, ["1", "0.5", '"word"', "-2"])),
    ],
    ids=["ints", "floats", "bools", "texts", "numbers", "ints and bools", "ints, floats and texts"],
)
def test_types_that_one_column_holds_stay_and_others_become_json(
    parts: list[Typed], expected: tuple[ItemKind, list[Any]]
) -> None:
    assert values(["word"], *parts) == expected


def test_a_number_that_json_does_not_know_becomes_its_name_among_others() -> None:
    broken = typed(ItemKind.FLOAT, [1], [float("nan")], np.float64)
    assert values(["word"], broken, WORDS) == (ItemKind.JSON, ['"nan"', '"word"'])


@pytest.mark.parametrize("text", ['["a"b"]', "word", "[1, NaN]", "Infinity", "[1,", "007", "[" * 100_000])
def test_text_that_is_no_json_becomes_a_json_string_of_it(text: str) -> None:
    texts = [text, "[1]"]
    part = typed(ItemKind.JSON, [0, 1, 2], [0, 1, 0], np.int32)
    kind, found = values(texts, part)
    assert (kind, [json.loads(value) for value in found]) == (ItemKind.JSON, [text, [1], text])
    assert all(isinstance(value, RawJson) for value in found)
    assert len(texts) == 3, "one new text for both"


@pytest.mark.parametrize(
    ("key", "texts", "expected"),
    [
        ("grid", ["[1, 2, 3]", "[4,5,6]"], (ItemKind.INT_LIST, [(1, 2, 3), (4, 5, 6)])),
        ("block", ["[1, 2, 3]", "[4,5]"], (ItemKind.JSON, ["[1, 2, 3]", "[4,5]"])),
        ("grid", ["[1, 2.5]", "[4,5]"], (ItemKind.JSON, ["[1, 2.5]", "[4,5]"])),
        ("grid", ["[]", "[]"], (ItemKind.JSON, ["[]", "[]"])),
        ("grid", ["[true]", "[false]"], (ItemKind.JSON, ["[true]", "[false]"])),
        ("grid", ["[9223372036854775808]"] * 2, (ItemKind.JSON, ["[9223372036854775808]"] * 2)),
        ("Input Dims", ["[1, 2]", "[3, 4]"], (ItemKind.JSON, ["[1, 2]", "[3, 4]"])),
    ],
)
def test_a_kernels_shape_is_numbers_and_other_lists_stay_text(
    key: str, texts: list[str], expected: tuple[ItemKind, list[Any]]
) -> None:
    part = typed(ItemKind.JSON, [3, 7], [0, 1], np.int32)
    assert values(texts, part, key=key) == expected


def test_of_two_values_for_one_event_the_later_one_holds() -> None:
    assert values([], typed(ItemKind.INT, [4, 1, 4], [1, 2, 3], np.int64)) == (ItemKind.INT, [2, 3])
