"""The audit of what is installed, without a network: pins, consistency, and the run-time dependencies that were reviewed."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"([\w.-]+)==([\w.+!-]+)")

# what every installation of devprof brings along, and under which licence; read and compared when it changes
REVIEWED = {
    "numpy": ("numpy>=1.26", "BSD"),
    "pluggy": ("pluggy>=1.5", "MIT"),
    "rich": ("rich>=13", "MIT"),
    "typer": ("typer>=0.12", "MIT"),
}


def _pins(name: str) -> dict[str, str]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    found = {}
    for line in filter(None, lines):
        pin = PIN.fullmatch(line)
        assert pin is not None, f"{name}: {line!r} is no exact version"
        found[pin[1]] = pin[2]
    return found


def test_everything_that_make_installs_is_pinned_to_one_version() -> None:
    assert len(_pins("requirements-dev.txt")) > 30
    assert set(_pins("requirements-torch.txt")) == {"torch"}


def test_what_is_installed_here_is_what_is_pinned() -> None:
    wanted = _pins("requirements-dev.txt")
    installed = {}
    for name in wanted:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    others = {name: (found, wanted[name]) for name, found in installed.items() if found != wanted[name]}
    assert len(installed) > 10
    assert others == {}, "an installation that is not of `make`? Then these versions are not the ones that CI has"


def test_devprof_brings_along_what_was_reviewed_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == [wanted for wanted, _ in REVIEWED.values()]


@pytest.mark.parametrize("name", REVIEWED)
def test_the_licence_of_a_dependency_is_the_one_that_was_read(name: str) -> None:
    facts = metadata(name)
    said = [facts.get("License-Expression") or "", facts.get("License") or "", *facts.get_all("Classifier", [])]
    assert any(REVIEWED[name][1] in text for text in said)
