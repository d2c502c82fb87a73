"""Which decoder reads a file: the native one where its library is at hand, else the fastest one in Python."""

from __future__ import annotations

import ctypes

from devprof.store.readers.json_chunks import Decoder
from devprof.store.readers.json_native import NativeDecoder
from devprof.store.readers.json_plain import PlainDecoder

__all__ = ["native_decoder", "python_decoder"]


def native_decoder(library: ctypes.CDLL) -> Decoder:
    """Return a decoder for one file.

    Args:
        library: that of `build_spec.JSON`.
    """
    return NativeDecoder(library, python_decoder())


def python_decoder() -> Decoder:
    """Return the fastest decoder in Python that is installed: msgspec's (extra ``fast``), else the standard library's."""
    try:
        from devprof.store.readers.json_fast import FastDecoder
    except ImportError:
        return PlainDecoder()
    return FastDecoder()
