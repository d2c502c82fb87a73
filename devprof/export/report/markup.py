"""Pieces of HTML: whatever is not `Markup` is escaped, so that nothing of a trace can be anything but text."""

from __future__ import annotations

import html
import re

__all__ = ["Markup", "joined", "tag", "text"]

_VOID = frozenset({"meta"})
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
"""What HTML does not allow as text: control characters, halves of surrogate pairs, noncharacters."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Return a value as HTML that shows its text."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def joined(*parts: object) -> Markup:
    """Return pieces one after the other."""
    return Markup("".join(map(text, parts)))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element.

    Args:
        name: its name, such as ``"td"``; never a text of the trace.
        children: what is in it; texts are escaped.
        attributes: a final ``_`` is dropped and other ``_`` are ``-``; None: left out, True: without a value.
    """
    words = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    return Markup(f"<{name}{words}>" if name in _VOID else f"<{name}{words}>{joined(*children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    word = key.rstrip("_").replace("_", "-")
    return f" {word}" if value is True else f' {word}="{text(value)}"'
