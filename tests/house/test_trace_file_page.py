"""docs/trace-file.md describes the files that are written."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np

from devprof.model import kLinkAsyncCpuGpu, kLinkFwdBwd
from devprof.store import COLUMNS, ItemKind
from devprof.store.schema import FORMAT, VERSION
from tests.unit.pipeline.rank_traces import rank_trace

PAGE = (Path(__file__).parents[2] / "docs/trace-file.md").read_text(encoding="utf-8")


def table(section: str, head: str) -> dict[str, str]:
    """Return the second cell of each row by the first, of the table with that head in a section."""
    part = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = part.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {name: first[1] for first in cells for name in re.findall(r"`(\w+)`", first[0])}


def test_every_column_is_described_with_its_dtype() -> None:
    assert table("Columns", "column") == {key: np.dtype(dtype).name for key, dtype in COLUMNS.items()}


def test_arrows_have_the_numbers_that_the_page_says() -> None:
    assert f"{kLinkFwdBwd}: from forward to backward, {kLinkAsyncCpuGpu}: from a launch to its work" in PAGE


def test_every_kind_of_item_is_described() -> None:
    assert set(table("Manifest", "kind")) == {kind.name for kind in ItemKind}


def test_a_file_has_the_members_keys_and_version_that_the_page_says(tmp_path: Path) -> None:
    rank_trace(rank=0).save(tmp_path / "t.devprof")
    with zipfile.ZipFile(tmp_path / "t.devprof") as archive:
        manifest = json.loads(archive.read("manifest.json"))
        members = {re.sub(r"/\d+\.", "/I.", name) for name in archive.namelist()}
    assert (manifest["format"], manifest["version"]) == (FORMAT, VERSION)
    assert f"| `{json.dumps(FORMAT)}`, {VERSION} |" in PAGE
    assert set(manifest) == set(table("Manifest", "key"))
    assert set(manifest["places"][0]) == set(re.findall(r"`(\w+)`", table("Manifest", "key")["places"]))
    fixed = {f"columns/{key}.npy" for key in COLUMNS}
    assert members == fixed | {"manifest.json", "strings.bin", "strings.npy", "items/I.npy", "items/I.events.npy"}
    assert all(f"`{name}`" in PAGE for name in members - fixed)
