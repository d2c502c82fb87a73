"""`import devprof` is cheap: rooms load when they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import devprof

HEAVY = ("numpy", "pluggy", "torch", "rich", "typer", "importlib.metadata")


def test_importing_devprof_loads_no_room_and_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import devprof; print(*(set(sys.modules) - before), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert [name for name in loaded if name.startswith("devprof.")] == []
    assert loaded.isdisjoint(HEAVY)


def test_every_name_of_the_front_door_is_the_rooms_own() -> None:
    rooms = {name: room for name, room in devprof._EXPORTS.items() if not room.startswith("devprof.torch")}
    assert {name: getattr(devprof, name) for name in rooms} == {
        name: getattr(importlib.import_module(room), name) for name, room in rooms.items()
    }


def test_the_front_door_lists_what_it_can_give() -> None:
    assert set(devprof.__all__) == {*devprof._EXPORTS, "__version__"}


def test_the_rooms_that_a_user_asks_are_there_after_importing_devprof() -> None:
    code = (
        "import devprof; print(devprof.analysis.diff.__module__, devprof.rules.check.__module__, devprof.host.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["devprof.analysis.difference", "devprof.rules.check", "devprof.host"]
