"""What is committed reads the same everywhere: no path of somebody's machine, no leftovers, no dead links."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# a folder of one machine; `/tmp` and `/path/to` are allowed only where text tells a reader to choose one
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:home|root|work|workspace|Users|mnt|opt)/[\w.-]+")
LEFTOVER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|^(?:<{7}|>{7}) ", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


def _committed() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs the git checkout, to know which files are committed")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listing.split("\0") if name]
    return [path for path in paths if path.is_file() and path != Path(__file__)]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert {str(p): found for p in _committed() if (found := MACHINE_PATH.findall(_text(p)))} == {}


def test_no_file_carries_a_note_to_self() -> None:
    assert {str(p): found for p in _committed() if (found := LEFTOVER.findall(_text(p)))} == {}


def test_every_link_between_files_leads_somewhere() -> None:
    pages = [path for path in _committed() if path.suffix == ".md"]
    dead = {
        str(page): [link for link in LINK.findall(_text(page)) if not (page.parent / link).exists()] for page in pages
    }
    assert {page: links for page, links in dead.items() if links} == {}
