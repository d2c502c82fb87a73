"""A reader of report pages: strict about their structure, and with the numbers of their tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta"}


@dataclass
class Element:
    """An element: its tag, attributes, and what is in it."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, *tags: str) -> list[Element]:
        """Elements of these tags in it, at any depth; every one where no tag is given."""
        inner = [child for child in self.children if isinstance(child, Element)]
        return [one for child in inner for one in ([child] if not tags or child.tag in tags else []) + child.all(*tags)]

    def table(self, number: int = 0) -> list[dict[str, str]]:
        """Rows of one of its tables, by column: the exact number where there is one, else the text."""
        found = self.all("table")[number]
        heads = [one.text for one in found.all("thead")[0].all("th")]
        return [
            {
                head: str(cell.attributes.get("data-value") or cell.text)
                for head, cell in zip(heads, row.all("td"), strict=True)
            }
            for row in found.all("tbody")[0].all("tr")
        ]


class Page(HTMLParser):
    """A parsed page."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_bytes().decode("utf-8")
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(self.source)
        self.close()
        assert self._open == [self.root], f"never closed: {[one.tag for one in self._open[1:]]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute stands twice in {tag}"
        element = Element(tag, dict(attrs))
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> where <{self._open[-1].tag}> is open"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction: {data}")

    def section(self, key: str) -> Element:
        """The section of an anchor."""
        return next(one for one in self.root.all("section") if one.attributes.get("id") == key)

    @property
    def sections(self) -> list[str]:
        """Anchors of the sections, in order."""
        return [str(one.attributes["id"]) for one in self.root.all("section")]
