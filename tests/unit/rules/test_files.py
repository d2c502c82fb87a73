"""Of a file that is not what its format says, a rule tells what is wrong; of one that is, none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from devprof.pipeline.files import joined, load_kineto
from devprof.pipeline.json_decoder import json_decoder
from devprof.rules import check
from devprof.store.readers import Decoder, python_decoder, read_kineto
from devprof.store.readers.json_plain import PlainDecoder

ROW = '{"ph":"M","name":"thread_name","pid":1,"tid":2,"ts":0,"args":{"name":"thread 2"}}'


def op(args: str = "", name: str = "a", number: int = 1, duration: str = "9") -> str:
    return (
        f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":2,"ts":{20 * number},"dur":{duration},'
        f'"args":{{"External id":{number}{args}}}}}'
    )


def file(*events: str, end: str = "]}") -> bytes:
    return ('{"traceEvents":[' + ",\n".join((ROW, *events)) + end).encode("utf-8", "surrogateescape")


RIGHT = (op(), op(number=2))
NONE_IN_CPP = "the file is no strict JSON, others may refuse it: 1 times number that is none, in the words of C++"
WRONG = {
    "a NaN": (file(op(',"r":NaN'), op(number=2)), {"items.finite": "1 values of 'r' are no finite number"}),
    "a NaN as C++ writes it": (
        file(op(',"r":-nan'), op(number=2)),
        {"items.finite": "1 values of 'r' are no finite number", "file.strict": NONE_IN_CPP},
    ),
    "infinity as C++ writes it, at the end": (
        file(op(), op(',"r":inf', number=2)),
        {"items.finite": "1 values of 'r' are no finite number", "file.strict": NONE_IN_CPP},
    ),
    "a comma behind the last event": (
        file(*RIGHT, end=",\n]}"),
        {"file.strict": "1 times comma behind the last event"},
    ),
    "a key that an event has twice, and its args": (
        file(op(duration='9,"dur":8'), op(',"r":1,"r":2', number=2)),
        {"file.strict": "2 times key that is in its object already, of which the last value is taken"},
    ),
    "text behind the end": (file(*RIGHT) + b"and more", {"file.strict": "1 times text behind the end"}),
    "half of it": (file(*RIGHT, op(number=3))[:-20], {"file.whole": "the file ends before its JSON does"}),
    "a name with a quote": (
        file(op(), op(name='a"b', number=2), op(number=3)),
        {"file.whole": "event that is no JSON"},
    ),
    "a name that is no UTF-8": (file(op(), op(name="a\udcff", number=2)), {"text.names": "1 names are empty, or hold"}),
    "a number with a plus": (
        file(op(), op(',"r":+1', number=2), op(number=3)),
        {"file.whole": "event that is no JSON"},
    ),
    "an arrow outside of every slice": (
        file(*RIGHT, '{"ph":"s","cat":"ac2g","name":"ac2g","id":3,"pid":1,"tid":2,"ts":500}'),
        {"file.whole": "end of an arrow without a slice of its own"},
    ),
    "a negative duration": (
        file(op(duration="-9"), op(number=2)),
        {"times.durations": "1 events end before they start"},
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.json"


@pytest.mark.parametrize("end", ["]}", "\n]\n}\n", '],"traceName":"x"}'])
def test_a_right_file_breaks_no_rule(path: Path, end: str) -> None:
    path.write_bytes(file(*RIGHT, end=end))
    assert check(load_kineto(path)) == []


@pytest.mark.parametrize("decoder", [json_decoder, lambda path: python_decoder(), lambda path: PlainDecoder()])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_found_whoever_decodes_it(
    path: Path, name: str, decoder: Callable[[Path], Decoder]
) -> None:
    content, expected = WRONG[name]
    path.write_bytes(content)
    found = check(joined(read_kineto(path, decoder=decoder(path))))
    assert {one.rule for one in found} == expected.keys()
    for rule, words in expected.items():
        says = [one.says for one in found if one.rule == rule]
        assert any(words in one for one in says), says
