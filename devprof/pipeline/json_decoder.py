"""The decoder for a JSON file: the native one where it is built, or where the file is worth building it for."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from devprof.errors import BuildError
from devprof.native import build, find, load
from devprof.store.readers import JSON, Decoder, native_decoder, python_decoder

__all__ = ["BUILD_FROM_BYTES", "json_decoder"]

BUILD_FROM_BYTES = 64 << 20
"""Text from which on the native decoder is built at first use. That takes some 2 s, as much as it saves in 90 MB of text over
the standard library's decoder and in 400 MB over msgspec's, and who has such a file has others. Once built, it reads files of
any size."""

_PACKED = 10
"""How many times its size a packed file likely holds."""


def json_decoder(path: Path) -> Decoder:
    """Return a new decoder for a file; ``DEVPROF_BUILD=never`` forbids building.

    Args:
        path: the file; one that cannot be read counts as small.
    """
    library = _library(_text_bytes(path) >= BUILD_FROM_BYTES and os.environ.get("DEVPROF_BUILD") != "never")
    return python_decoder() if library is None else native_decoder(library)


def _text_bytes(path: Path) -> int:
    """Return about how much text a file holds."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size * (_PACKED if file.read(2) == b"\x1f\x8b" else 1)
    except OSError:
        return 0


def _library(may_build: bool) -> ctypes.CDLL | None:
    try:
        if find(JSON) is None and not may_build:
            return None
    except BuildError:
        return None
    return _built()


@functools.cache
def _built() -> ctypes.CDLL | None:
    """Return the library, built where it is not; None where it cannot be, which is not tried again."""
    try:
        build(JSON)
        return load(JSON)
    except BuildError:
        return None
