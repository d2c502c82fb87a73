"""No room reaches another past the layers: by the front door, which knows all rooms, or by a name in a string.

`make layers` sees imports alone. Here a string that names a room counts as an import of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.test_architecture import layers

ROOT = Path(__file__).parents[2]
FLOORS = {room: floor for floor, rooms in enumerate(layers()) for room in rooms}
PLUGINS = ("openreg_sim", "cuda_cupti")
FOR_PLUGINS = {"contract", "model", "correlation", "errors", "native"}
OF_THE_ROOT = {"__version__", "__file__"}
FRONT_DOOR = ROOT / "devprof/__init__.py"
ALLOWED = {
    (
        "devprof/torch/autoload.py",
        "trigger",
    ): "with DEVPROF_ON_DEMAND `import torch` starts the listener, which stands above",
    ("devprof/profiler/hosts.py", "torch"): "chosen at run time; a program without torch never loads that room",
    ("devprof/host/functions/modules.py", "any room"): "no reach: tells devprof's own modules from the program's",
}
"""Which module reaches which room by name, and why."""


def _homes() -> dict[Path, str]:
    """Return each module and its room, or its plugin."""
    inside = ROOT / "devprof"
    homes = {path: path.relative_to(inside).parts[0].removesuffix(".py") for path in inside.rglob("*.py")}
    homes.pop(FRONT_DOOR)
    return homes | {path: name for name in PLUGINS for path in (ROOT / "plugins" / name / name).rglob("*.py")}


def _may_reach(home: str, room: str) -> bool:
    return room in FOR_PLUGINS if home in PLUGINS else room == home or FLOORS[room] < FLOORS[home]


def _named(tree: ast.AST) -> Iterator[str]:
    """Yield the rooms that strings name; "devprof." is the beginning of any."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = re.fullmatch(r"devprof\.(\w*)[\w.:]*", node.value)
            if named and (named[1] in FLOORS or not named[1]):
                yield named[1] or "any room"


def _through_the_front_door(tree: ast.AST) -> Iterator[str]:
    """Yield what is taken from the root itself, which hands out every room's names."""
    bound, fine = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "devprof" and not node.level:
            yield from (f"devprof.{name.name}" for name in node.names if name.name not in {*FLOORS, *OF_THE_ROOT})
        elif isinstance(node, ast.Import):
            names = [name for name in node.names if name.name.split(".")[0] == "devprof"]
            bound |= {name.asname or "devprof" for name in names if name.name == "devprof" or name.asname is None}
        elif isinstance(node, ast.Attribute) and node.attr in OF_THE_ROOT:
            fine.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in bound and node not in fine:
            yield f"the root, as {node.id!r}"


def _reaches(source: str, home: str) -> set[str]:
    tree = ast.parse(source)
    named = {room for room in _named(tree) if room not in FLOORS or not _may_reach(home, room)}
    return named | set(_through_the_front_door(tree))


def test_no_module_reaches_a_room_past_the_layers_but_those_that_have_a_reason() -> None:
    found = {
        (str(path.relative_to(ROOT)), what)
        for path, home in _homes().items()
        for what in _reaches(path.read_text(encoding="utf-8"), home)
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    ("home", "source", "what"),
    [
        ("link", "import devprof\ndevprof.profile", {"the root, as 'devprof'"}),
        ("link", "import devprof as d\ngetattr(d, 'profile')", {"the root, as 'd'"}),
        ("link", "import devprof.errors\ndevprof.capture.tell", {"the root, as 'devprof'"}),
        ("link", "from devprof import profile", {"devprof.profile"}),
        ("openreg_sim", "import devprof\ndevprof.profile", {"the root, as 'devprof'"}),
        ("openreg_sim", "import_module('devprof.store')", {"store"}),
        ("clock", "import_module('devprof.capture')", {"capture"}),
        ("clock", "import_module('devprof.link.links')", {"link"}),
        ("clock", "import_module(f'devprof.{room}')", {"any room"}),
        ("clock", "HOST = 'devprof.torch.profile_host:TorchHost'", {"torch"}),
        ("link", "import devprof\ndevprof.__version__", set()),
        ("link", "from devprof import __version__, errors", set()),
        ("clock", "getLogger('devprof.clock'), import_module('devprof.model')", set()),
        ("openreg_sim", "import_module('devprof.native')", set()),
    ],
)
def test_a_reach_past_the_layers_is_seen(home: str, source: str, what: set[str]) -> None:
    assert _reaches(source, home) == what
