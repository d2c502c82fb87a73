"""Text that Kineto's writer can hold: the one place where names and metadata are cleaned for it.

Kineto of torch 2.13 pastes text into JSON nearly raw: a quote makes the file invalid, a backslash becomes a slash, one byte
outside printable ASCII turns a whole name into ``unknown``. devprof's own exporters keep the text as it is.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Container, Sequence

__all__ = ["MAX_TEXT", "TextCleaner", "clean", "unused"]

MAX_TEXT = 4096
"""Longest text that is kept whole, characters; C++ kernel names reach a few thousand."""

_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_SPECIAL = {'"': "'", "\\": "/", "\t": " ", "\n": " ", "\r": " "}


def clean(text: str) -> str:
    """Return `text` as printable ASCII without quotes and backslashes.

    Quotes become apostrophes, backslashes slashes, white space a blank; other control characters vanish; the rest is
    percent-encoded UTF-8, so that it can be read back.
    """
    return text if _PLAIN.fullmatch(text) else "".join(map(_clean_character, text))


def unused(text: str, taken: Container[str]) -> str:
    """Return `text`, with a number behind it where it is taken: two keys may become one when they are cleaned."""
    if text not in taken:
        return text
    return next(other for n in itertools.count(2) if (other := f"{text} ({n})") not in taken)


def _clean_character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~":
        return character
    if character < " " or character == "\x7f":
        return ""
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


class TextCleaner:
    """Cleans the texts of one session and counts what it changed, per distinct text.

    Args:
        demangles: says whether torch's tables would show this name as another one ("Pi" as ``int*``).
    """

    def __init__(self, demangles: Callable[[str], bool]) -> None:
        self._demangles = demangles
        self.changes: Counter[str] = Counter()

    def names(self, texts: Sequence[str]) -> list[str]:
        """Return the texts as activity names."""
        return [self._name(text) for text in texts]

    def text(self, text: str) -> str:
        """Return one text as a metadata value, a key, or a row's name."""
        return self._shorten(self._clean(text))

    def _name(self, text: str) -> str:
        name = self.text(text)
        if not name.strip():
            self.changes["empty name"] += 1
            return "(unnamed)"
        # a trailing blank keeps torch from demangling it (single letters it leaves alone), Kineto from capitalising it
        if name == "kernel" or (len(name) > 1 and not name.startswith("_Z") and self._demangles(name)):
            self.changes["name guarded"] += 1
            return name + " "
        return name

    def _clean(self, text: str) -> str:
        cleaned = clean(text)
        if cleaned != text:
            self.changes["text cleaned"] += 1
        return cleaned

    def _shorten(self, text: str) -> str:
        if len(text) <= MAX_TEXT:
            return text
        self.changes["text shortened"] += 1
        return text[: MAX_TEXT - 3] + "..."
