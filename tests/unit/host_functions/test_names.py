"""Names of modules, files and C functions."""

from __future__ import annotations

import collections
import gc
import json.decoder
import math
import sys

import pytest

from tests.unit.host_functions.trees import traced

pytestmark = pytest.mark.usefixtures("core")


class Module:
    """As torch's: a call of it calls `forward`."""

    def __call__(self, value: int) -> int:
        return self.forward(value)

    def forward(self, value: int) -> int:
        return value


class Linear(Module):
    pass


class Block(Module):
    def __init__(self) -> None:
        self.first, self.second = Linear(), Linear()

    def forward(self, value: int) -> int:
        return self.second(self.first(value))


class NoModule:
    def __call__(self) -> None:
        """Calls nothing."""


def test_calls_of_modules_carry_their_class_and_number_in_the_order_of_first_calls() -> None:
    def program() -> None:
        block = Block()
        block(1)
        block(1)
        Block()(1)
        NoModule()()

    one = [
        "    forward",
        "      nn.Module: Linear_0",
        "        forward",
        "      nn.Module: Linear_1",
        "        forward",
    ]
    other = [line.replace("_1", "_3").replace("r_0", "r_2") for line in one]
    found = traced(program)
    tree = [line for line in found.tree() if not line.endswith("__init__")]
    assert tree == [
        "program",
        "  nn.Module: Block_0",
        *one,
        "  nn.Module: Block_0",
        *one,
        "  nn.Module: Block_1",
        *other,
        "  __call__",
    ]
    numbers = found.batch.metadata["Python module id"]
    named = {name: int(numbers.values[row]) for row, name in enumerate(found.names()) if numbers.has(row)}
    assert named == {
        "nn.Module: Block_0": 0,
        "nn.Module: Block_1": 1,
        **{f"nn.Module: Linear_{number}": number for number in range(4)},
    }


def test_a_module_in_the_place_of_one_that_is_gone_has_a_number_of_its_own() -> None:
    def program() -> None:
        for _ in range(5):
            Linear()(1)
            gc.collect()

    assert [line for line in traced(program).tree() if "Linear" in line] == [
        f"  nn.Module: Linear_{n}" for n in range(5)
    ]


def test_files_are_named_from_the_directory_of_imports_on() -> None:
    found = traced(lambda: json.decoder.JSONDecoder().decode("1"))
    line = json.decoder.JSONDecoder.decode.__code__.co_firstlineno
    assert f"json/decoder.py({line}): decode" in found.batch.strings


def test_c_functions_are_named_as_their_repr_says() -> None:
    items = collections.deque([1])

    def program() -> None:
        math.sqrt(2.0)
        items.append(2)

    found = traced(program)
    names = set(found.batch.strings)
    assert {repr(math.sqrt), repr(items.append)} <= names
    assert repr(math.sqrt) == "<built-in function sqrt>"


def test_functions_of_c_with_one_name_on_two_types_are_told_apart() -> None:
    def program() -> None:
        [].append(1)
        collections.deque().append(1)

    assert traced(program).tree() == ["program", "  list.append()", "  collections.deque.append()"]


def test_a_function_that_is_gone_keeps_its_name() -> None:
    def program() -> None:
        for number in range(20):
            names: dict[str, object] = {}
            exec(f"def f{number}(): pass", names)
            names[f"f{number}"]()  # type: ignore[operator]

    calls = [line.strip() for line in traced(program).tree() if line.strip().startswith("f")]
    assert calls == [f"f{number}" for number in range(20)]
    assert sys.getprofile() is None
