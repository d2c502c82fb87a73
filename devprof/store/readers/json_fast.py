"""`FastDecoder`: chunks by msgspec (extra ``fast``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple

from devprof.store.readers.json_chunks import loads, loads_or_text
from devprof.store.readers.json_plain import ObjectChunk, ObjectColumn, PlainDecoder, columns_of, groups
from devprof.store.readers.json_repeated import may_repeat, repeated_keys
from devprof.store.readers.json_source import NotJson

__all__ = ["FastDecoder"]

_Text = str | None
_Number = int | float | str | None
_MOST_KEYS = 48
"""Args of one kind with more keys than this are made into dicts: most fields of a struct would be empty."""
_USUAL_KEY = re.compile(r'[^\x00-\x1f\\"\ud800-\udfff]*')
"""Keys that a struct's field can have."""
_NOTHING = Raw()


class _Event(Struct, gc=False, forbid_unknown_fields=True):
    ph: _Text = None
    cat: _Text = None
    name: _Text = None
    pid: _Number = None
    tid: _Number = None
    ts: _Number = None
    dur: _Number = None
    id: _Number = None
    s: _Text = None
    bp: _Text = None
    args: Raw = _NOTHING


class _ExactEvent(Struct, gc=False, forbid_unknown_fields=True):
    ph: _Text = None
    cat: _Text = None
    name: _Text = None
    pid: _Number = None
    tid: _Number = None
    ts: Raw = _NOTHING
    dur: Raw = _NOTHING
    id: _Number = None
    s: _Text = None
    bp: _Text = None
    args: Raw = _NOTHING


class FastDecoder:
    """Decodes by msgspec; what it does not take goes to the standard library."""

    def __init__(self) -> None:
        self._events = msgspec.json.Decoder(list[_Event])
        self._exact_events = msgspec.json.Decoder(list[_ExactEvent])
        self._plain = PlainDecoder()
        self._args: dict[int, _ArgsDecoder] = {}
        self.exact = False

    def decode(self, piece: memoryview) -> ObjectChunk:
        """Return the events of a piece of a list.

        Raises:
            NotJson: it is none, or nested too deeply.
        """
        text = b"".join((b"[", piece, b"]"))
        try:
            events = (self._exact_events if self.exact else self._events).decode(text)
        except (ValueError, RecursionError):
            self._plain.exact = self.exact
            return self._plain.decode(piece)
        if not events:
            return self._plain.from_objects([])
        *fields, args = zip(*map(astuple, events), strict=True)
        keys = _Keys(text, (*fields, args))
        return ObjectChunk(fields, lambda kind: keys.of(self._columns(kind, args)), 0, keys.repeated)

    def from_objects(self, events: list[Any]) -> ObjectChunk:
        """Return the events among some objects."""
        return self._plain.from_objects(events)

    def _columns(self, kind: npt.NDArray[np.int64], args: Sequence[Raw]) -> Iterator[ObjectColumn]:
        for events in groups(kind):
            given = [args[event] for event in events.tolist()]
            if given[0] is _NOTHING:  # then likely all, but any may have some
                there = [at for at, one in enumerate(given) if one is not _NOTHING]
                events, given = events[there], [given[at] for at in there]
            if given:
                decode = self._args.setdefault(int(kind[events[0]]), _ArgsDecoder())
                yield from decode.columns(events, given)


class _Keys:
    """Counts the keys of a piece, and finds out by their number whether one may be there twice."""

    def __init__(self, text: bytes, fields: Sequence[Sequence[Any]]) -> None:
        self._text = text
        # a Raw is compared with what is no Raw at a price: only where fields are such
        self._n = sum(len(values) - values.count(_NOTHING if isinstance(values[0], Raw) else None) for values in fields)

    def of(self, columns: Iterator[ObjectColumn]) -> Iterator[ObjectColumn]:
        """Pass the columns of the args on."""
        for column in columns:
            self._n += len(column.events)
            yield column

    def repeated(self) -> int:
        """Return how many keys are in their object already; after the columns."""
        return repeated_keys(self._text) if may_repeat(self._text, self._n) else 0


class _ArgsDecoder:
    """Decodes the args of one kind of event, by a struct with the keys that they have had so far."""

    def __init__(self) -> None:
        self._keys: dict[str, bool] = {}  # whether a list or an object has been seen under the key
        self._decoder: msgspec.json.Decoder[Any] | None = None

    def columns(self, events: npt.NDArray[np.int64], args: list[Raw]) -> Iterator[ObjectColumn]:
        """Return columns of the args of some events."""
        text = b"[" + b",".join(args) + b"]"
        if self._decoder is not None:
            try:
                return self._from_structs(events, self._decoder.decode(text))
            except (ValueError, RecursionError):
                pass
        return self._learn(events, [one if one is not _NOTHING else Raw(b"null") for one in args])

    def _from_structs(self, events: npt.NDArray[np.int64], structs: list[Any]) -> Iterator[ObjectColumn]:
        for key, values in zip(self._keys, zip(*map(astuple, structs), strict=True), strict=True):
            if UNSET in values:
                there = [at for at, value in enumerate(values) if value is not UNSET]
                if there:
                    yield ObjectColumn(key, events[there], [values[at] for at in there])
            else:
                yield ObjectColumn(key, events, values)

    def _learn(self, events: npt.NDArray[np.int64], given: list[Raw]) -> Iterator[ObjectColumn]:
        """Decode args with keys that are new, and make a struct that has them."""
        try:
            objects = loads(b"[" + b",".join(given) + b"]")
        except NotJson:
            objects = [loads_or_text(bytes(one)) for one in given]
        args = [one if isinstance(one, dict) else {} if one is None else {"args": one} for one in objects]
        for one in args:
            for key, value in one.items():
                self._keys[key] = self._keys.get(key, False) or isinstance(value, list | dict)
        usual = 0 < len(self._keys) <= _MOST_KEYS and all(map(_USUAL_KEY.fullmatch, self._keys))
        self._decoder = self._made() if usual else None
        for column in columns_of(args):
            yield ObjectColumn(column.key, events[column.events], column.values)

    def _made(self) -> msgspec.json.Decoder[Any]:
        names = {f"f{at}": key for at, key in enumerate(self._keys)}
        fields = [(name, Raw if self._keys[key] else Any, UNSET) for name, key in names.items()]
        made = msgspec.defstruct("Args", fields, rename=names, gc=False, forbid_unknown_fields=True)
        return msgspec.json.Decoder(list[made])  # type: ignore[valid-type]  # a type made for this file
