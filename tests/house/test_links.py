"""Links between pages lead to headings that are there; no network is asked."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?: {0,3})(```|~~~).*?^(?: {0,3})\1[ \t]*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^ {0,3}#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)
NAMED = re.compile(r"""<a\s+(?:id|name)=["']([^"']+)["']""")
LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)*\]\(((?!https?://|mailto:)[^)\s]*#[^)\s]+)\)")


def _pages() -> list[Path]:
    try:
        words = ["git", "ls-files", "-z", "*.md"]
        listing = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the git checkout, to know which files are committed")
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def _prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def slugs(prose: str) -> Iterator[str]:
    """Yield what a `#` may name on a page: each heading as GitHub spells it, and each anchor that is written out."""
    seen: dict[str, int] = {}
    for heading in HEADING.findall(prose):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]+>", "", heading))
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        yield f"{slug}-{count}" if count else slug
    yield from NAMED.findall(prose)


def test_headings_get_the_slugs_that_github_gives_them() -> None:
    page = (
        '# `ActivityBatch`: from columns\n## A & B, c-d\n## Twice\n## Twice\n### <a id="x9"></a>X9 [a](b.md) link ##\n'
    )
    assert list(slugs(page)) == [
        "activitybatch-from-columns",
        "a--b-c-d",
        "twice",
        "twice-1",
        "x9-a-link",
        "x9",
    ]


def test_every_link_to_a_heading_leads_to_one() -> None:
    dead: dict[str, list[str]] = {}
    for page in _pages():
        for link in LINK.findall(_prose(page)):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if target.suffix == ".md" and not (target.is_file() and anchor in set(slugs(_prose(target)))):
                dead.setdefault(str(page.relative_to(ROOT)), []).append(link)
    assert dead == {}


def test_every_page_is_linked_from_another() -> None:
    pages = _pages()
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in pages
        for link in re.findall(r"\]\(((?!https?://|mailto:|#)[^)\s]+)\)", _prose(page))
    }
    roots = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
    alone = [
        page for page in pages if page.resolve() not in linked and page.parent in {ROOT / "docs", ROOT / "docs/adr"}
    ]
    assert [
        str(page.relative_to(ROOT)) for page in alone if page.name not in roots and "template" not in page.name
    ] == []
