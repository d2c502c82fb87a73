"""The native writers' library, loaded and checked."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from devprof.errors import BuildError
from devprof.export import native_chunk, perfetto_abi
from devprof.export.build_spec import EXPORT
from devprof.native import load

__all__ = ["library"]

_LAYOUTS = {
    "devprof_json_chunk_bytes": native_chunk.Chunk,
    "devprof_json_field_bytes": native_chunk.Field,
    "devprof_perfetto_trace_bytes": perfetto_abi.PerfettoTrace,
    "devprof_perfetto_block_bytes": perfetto_abi.Block,
    "devprof_rows_bytes": perfetto_abi.Slices,
}


@functools.cache
def library(path: Path) -> ctypes.CDLL:
    """Return the built library, checked.

    Args:
        path: where it is; another file is another library.

    Raises:
        BuildError: it is not there, cannot be loaded, or has another layout than this process.
    """
    loaded = load(EXPORT)
    for name, (result, arguments) in (native_chunk.SIGNATURES | perfetto_abi.SIGNATURES).items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    found = [getattr(loaded, name)() for name in _LAYOUTS]
    expected = [ctypes.sizeof(layout) for layout in _LAYOUTS.values()]
    if found != expected:
        raise BuildError(f"{path} takes structures of {found} bytes, this process makes {expected}; remove it")
    return loaded
