"""One version for the three distributions, and a page of the changelog for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("devprof", "plugins/openreg_sim/openreg_sim", "plugins/cuda_cupti/cuda_cupti")


def _version(package: str) -> str:
    text = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(version)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_changelog_has_a_page_for_the_version_of_every_package(package: str) -> None:
    pages = re.findall(r"^## \[?([\d.]+)\]?", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert _version(package) == pages[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_ships_its_types(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
