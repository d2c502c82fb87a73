"""The promised names and signatures are written down; changing one is a decision, made with `make snapshot`."""

from __future__ import annotations

import enum
import importlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import devprof

SNAPSHOT = Path(__file__).with_name("public_api.txt")
PROMISED = (
    "devprof.analysis",
    "devprof.contract",
    "devprof.correlation",
    "devprof.errors",
    "devprof.export",
    "devprof.host",
    "devprof.model",
    "devprof.native",
    "devprof.profiler",
    "devprof.rules",
    "devprof.store",
)


def _lines() -> Iterator[str]:
    # the front door resolves names lazily, some of them to a room that needs torch: names only
    yield from (f"devprof.{name}" for name in sorted(devprof.__all__))
    for room in PROMISED:
        module = importlib.import_module(room)
        for name in sorted(module.__all__):
            yield from _describe(f"{room}.{name}", getattr(module, name))


def _describe(path: str, value: object) -> Iterator[str]:
    if isinstance(value, type) and issubclass(value, enum.Enum):
        yield f"{path}: enum"
        yield from (f"{path}.{member.name} = {member.value!r}" for member in value)
    elif isinstance(value, type):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"{path}: class({bases})"
        yield from (f"{path}.{name}: {kind}" for name, kind in sorted(value.__annotations__.items()) if name[0] != "_")
        for name, member in sorted(vars(value).items()):
            if not name.startswith("_"):
                yield from _describe_member(f"{path}.{name}", member)
    elif inspect.isfunction(value):
        yield f"{path}{inspect.signature(value)}"
    else:
        yield f"{path}: {type(value).__name__}"


def _describe_member(path: str, member: object) -> Iterator[str]:
    if isinstance(member, property):
        yield f"{path}: property"
    elif isinstance(member, classmethod | staticmethod):
        yield f"{path}{inspect.signature(member.__func__)}"
    elif inspect.isfunction(member):
        yield f"{path}{inspect.signature(member)}"


def test_the_public_api_is_the_one_written_down() -> None:
    found = "\n".join(_lines()) + "\n"
    if os.environ.get("RENEW_SNAPSHOTS"):
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert found.splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines(), "meant to change? `make snapshot`"


def test_every_promised_room_lists_its_names_in_order_and_without_private_ones() -> None:
    for room in PROMISED:
        names = importlib.import_module(room).__all__
        assert len(set(names)) == len(names), room
        assert [name for name in names if name.startswith("_")] == [], room
