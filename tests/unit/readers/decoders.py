"""The three decoders of JSON, each by its name."""

from __future__ import annotations

import ctypes
import functools

import pytest

from devprof.native import build, load, missing
from devprof.store.readers.build_spec import JSON
from devprof.store.readers.json_choice import native_decoder
from devprof.store.readers.json_chunks import Decoder
from devprof.store.readers.json_plain import PlainDecoder

DECODERS = ("native", "msgspec", "json")


@functools.cache
def library() -> ctypes.CDLL:
    """Return the native library, built here."""
    build(JSON)
    return load(JSON)


def new_decoder(name: str) -> Decoder:
    """Return a new decoder, or skip the test where there is none."""
    if name == "json":
        return PlainDecoder()
    if name == "native":
        if reason := missing(JSON):
            pytest.skip(reason)
        return native_decoder(library())
    pytest.importorskip("msgspec")
    from devprof.store.readers.json_fast import FastDecoder

    return FastDecoder()
