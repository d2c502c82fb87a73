"""The tables of rooms in the documents name the rooms that there are, on the floors that the layers give them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _rooms() -> set[str]:
    inside = (ROOT / "devprof").iterdir()
    return {path.stem for path in inside if (path / "__init__.py").exists() or path.suffix == ".py"} - {
        "__init__",
        "__main__",
    }


def _table() -> list[tuple[int, str]]:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return [(int(floor), room) for floor, room in re.findall(r"^\| (\d) \| `(\w+)` \|", text, re.MULTILINE)]


def layers() -> list[set[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return [set(re.findall(r"\w+", layer)) for layer in reversed(contract["layers"])]


def test_the_table_of_rooms_names_the_rooms_that_there_are() -> None:
    assert {room for _, room in _table()} == _rooms()


def test_the_table_puts_every_room_on_the_floor_of_its_layer() -> None:
    assert {room: floor for floor, room in _table()} == {
        room: floor for floor, rooms in enumerate(layers()) for room in rooms if room in {name for _, name in _table()}
    }


def test_the_guide_says_for_every_room_what_goes_there() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [room for room in sorted(_rooms()) if f"`devprof/{room}" not in guide] == []
