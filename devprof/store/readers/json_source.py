"""`JsonSource`: a trace file's facts one by one, and its events in pieces that are decoded alone.

A cut between two events is right exactly where the piece before it decodes: JSON that is cut inside an object, a list or a text
does not. So cuts are guessed from the look of the text, and the decoder is the judge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from devprof.errors import TraceFileError
from devprof.store.readers.json_blocks import Blocks, Progress
from devprof.store.readers.json_repeated import REPEATED, repeated_keys

__all__ = ["JsonSource", "NotJson", "Truncated", "whole"]

_T = TypeVar("_T")

_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*(?=\[)')
_WORDS = re.compile(r'"(?:[^"\\]|\\.)*+"|(?<![\w.])([-+]?)(nan|inf|infinity)\b', re.IGNORECASE)
_SPACE = re.compile(rb"[ \t\r\n]*")
_LAST_COMMA = "comma behind the last event"
_END = -1
_BETWEEN = ", \t\r\n"
_WINDOW = 1 << 16
_MOST_FACT_BYTES = 1 << 28
_ENCODING = ("utf-8", "surrogateescape")  # what is no UTF-8 keeps its length


def whole(digits: str) -> int | str:
    """Return a whole number; its digits themselves where they are more than Python turns into one."""
    try:
        return int(digits)
    except ValueError:
        return digits


_DECODER = json.JSONDecoder(parse_int=whole)


class NotJson(ValueError):
    """A piece of text does not decode."""


class Truncated(Exception):
    """The file ends before its JSON does."""


class JsonSource:
    """Reads one file from start to end. Used by one thread.

    Args:
        path: the file.
        max_bytes: most bytes of text, unpacked.
        piece_bytes: about how much text is decoded at once.
        progress: called now and then while the file is read.

    Attributes:
        unreadable: events that are no JSON, and were stepped over.
        lax: what was read although JSON does not allow it, and how often.
    """

    def __init__(self, path: Path, max_bytes: int, piece_bytes: int, progress: Progress | None = None) -> None:
        self._path = path
        self._blocks = Blocks(path, max_bytes, progress)
        self._piece_bytes = piece_bytes
        self._text = b""
        self._at = 0
        self._ended = False
        self.unreadable = 0
        self.lax: Counter[str] = Counter()

    @property
    def note(self) -> str:
        """What cut the text short, if something did."""
        return self._blocks.note

    # facts

    def begins_with_list(self) -> bool:
        """Step into the file's list of events, or into its object, and say whether it is the list.

        Raises:
            TraceFileError: it is neither.
        """
        if self._byte() == 0xEF and self._text.startswith(b"\xef\xbb\xbf"):
            self._at = 3
        first = self._byte()
        if first not in (ord("["), ord("{")):
            found = self._text[self._at : self._at + 20]
            why = f" ({self.note})" if self.note else ""
            raise TraceFileError(
                f"{self._path} is no trace in JSON: expected an object or a list, found {found!r}{why}"
            )
        self._at += 1
        return first == ord("[")

    def key(self) -> str | None:
        """Take the next key of the object and its colon; None: the object ends here.

        Raises:
            Truncated: the file ends.
            NotJson: there is no key.
        """
        if self._byte() == ord(","):
            self._at += 1
        first = self._byte()
        if first == ord("}"):
            return None
        key = self.value()
        if not isinstance(key, str) or self._byte() != ord(":"):
            raise NotJson(f"expected a key and a colon, found {self._text[self._at : self._at + 20]!r}")
        self._at += 1
        return key

    def value(self) -> Any:
        """Take the next value, whatever it is.

        Raises:
            Truncated: the file ends in it.
            NotJson: it is not JSON, or larger than a fact may be.
        """
        if self._byte() == _END:
            raise Truncated
        window = _WINDOW
        while True:
            self._hold(window)
            text = self._text[self._at : self._at + window].decode(*_ENCODING)
            try:
                value, end = _DECODER.raw_decode(text)
            except RecursionError as error:
                raise NotJson("a fact is nested too deeply") from error
            except ValueError as error:
                end = len(text)
                if self._ended and self._at + window >= len(self._text):
                    raise Truncated from error
                if window >= _MOST_FACT_BYTES:
                    raise NotJson("a fact is too large, or is no JSON") from error
            # a number at the end of the text may go on
            if end < len(text) or (self._ended and self._at + window >= len(self._text)):
                self._at += len(text[:end].encode(*_ENCODING))
                return value
            window *= 8

    def starts_list(self) -> bool:
        """Step into a list if one comes next, and say whether."""
        if self._byte() != ord("["):
            return False
        self._at += 1
        return True

    def find_events(self) -> bool:
        """Step to the list of events, over whatever is in front of it, and say whether there is one."""
        self._at = 0  # what could not be read may have begun in front of this
        while True:
            if found := _EVENTS.search(self._text, self._at):
                self._at = found.end() + 1
                return True
            if self._ended:
                return False
            self._at = max(self._at, len(self._text) - _WINDOW)
            self._hold(self._piece_bytes)

    # events

    def pieces(self, decode: Callable[[memoryview], _T], from_objects: Callable[[list[Any]], _T]) -> Iterator[_T]:
        """Yield what the list's events decode to, piece by piece, up to the end of the list.

        Args:
            decode: decodes what is between the brackets of a list; raises `NotJson`.
            from_objects: makes the same of objects, for pieces that do not decode as a whole.

        Raises:
            Truncated: the file ends within the list; what could be read has been yielded.
        """
        after_comma = False
        while self._byte() not in (_END, ord("]")):
            if self._text[self._at] == ord(","):
                self._at += 1
                after_comma = True
                continue
            self._hold(self._piece_bytes)
            yield self._piece(decode, from_objects)
            after_comma = False
        if self._byte() == _END:
            raise Truncated
        self._at += 1
        self.lax[_LAST_COMMA] += after_comma

    def end(self) -> None:
        """Step over the end of the file's object, if it is one, and count what is behind it."""
        if self._byte() == ord("}"):
            self._at += 1
        self.lax["text behind the end"] += self._byte() != _END

    def _piece(self, decode: Callable[[memoryview], _T], from_objects: Callable[[list[Any]], _T]) -> _T:
        for end, following in self._cuts():
            try:
                decoded = decode(memoryview(self._text)[self._at : end])
            except NotJson:
                continue
            self._at = following
            return decoded
        return from_objects(self._one_by_one())

    def _cuts(self) -> Iterator[tuple[int, int]]:
        """Yield where the piece may end and the next one begin, the likeliest first; few of them."""
        text, limit = self._text, self._at + self._piece_bytes
        if limit < len(text) or not self._ended:
            borders = list(_BORDER.finditer(text, max(self._at, limit - _WINDOW), limit))
            yield from ((border.start() + 1, border.end()) for border in borders[:-3:-1])
        end = len(text)
        for _ in range(2 if end <= limit + _WINDOW else 0):
            end = text.rfind(b"]", self._at, end)
            if end >= 0:
                yield end, end

    def _one_by_one(self) -> list[Any]:
        """Take the events at hand one after the other, stepping over those that are no JSON."""
        text = self._text[self._at : self._at + self._piece_bytes].decode(*_ENCODING)
        is_last = self._ended and self._at + self._piece_bytes >= len(self._text)
        events: list[Any] = []
        at = 0
        while at < len(text) and text[at] != "]":
            if text[at] in ", \t\r\n":
                at += 1
                continue
            event, end, is_strict = _event(text, at)
            self.lax["number that is none, in the words of C++"] += not is_strict
            if end == _END:
                if events and not is_last:
                    break  # it may only be cut
                end = _next_event(text, at)
                self.unreadable += 1
            else:
                events.append(event)
                self.lax[REPEATED] += repeated_keys(f"[{text[at:end].rstrip(_BETWEEN)}]")
            at = end
        if text[at : at + 1] == "]":
            self.lax[_LAST_COMMA] += text[:at].rstrip(" \t\r\n").endswith(",")
        self._at += len(text[:at].encode(*_ENCODING))
        return events

    # text

    def _byte(self) -> int:
        """Return the next byte that is not space, without taking it, or `_END`."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return _END
            self._hold(1)

    def _hold(self, size: int) -> None:
        """Have `size` bytes at hand, if the file has them."""
        missing = size - (len(self._text) - self._at)
        if missing > 0 and not self._ended:
            more = self._blocks.take(missing)
            self._ended = sum(map(len, more)) < missing
            self._text = b"".join((memoryview(self._text)[self._at :], *more))
            self._at = 0


def _event(text: str, at: int) -> tuple[Any, int, bool]:
    """Return the value that begins at a place of a text; where it ends, `_END`: it is no JSON; and whether it is strict."""
    try:
        return *_DECODER.raw_decode(text, at), True
    except RecursionError:
        return None, _END, True
    except ValueError:
        pass
    end = _next_event(text, at)
    words = _WORDS.sub(_spelled, text[at:end])
    try:
        event, used = _DECODER.raw_decode(words)
    except (ValueError, RecursionError):
        return None, _END, True
    behind = words[used:].lstrip(", \t\r\n")
    if behind and not behind.startswith("]"):
        return None, _END, True
    return event, end - len(behind) if text.endswith(behind, at, end) else end, False


def _spelled(found: re.Match[str]) -> str:
    """Spell a number that is none as `json` reads it; C++ writes it in small letters."""
    if found[2] is None:
        return found[0]
    sign = "-" if found[1] == "-" else ""
    return "NaN" if found[2].lower() == "nan" else f"{sign}Infinity"


_TEXT_BORDER = re.compile(r"\}\s*,\s*(?=\{)")


def _next_event(text: str, at: int) -> int:
    """Return where the next event seems to begin, or the end of the text."""
    found = _TEXT_BORDER.search(text, at)
    return found.end() if found else len(text)
