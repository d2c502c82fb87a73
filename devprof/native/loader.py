"""Load a built library, and refuse one that was made for another torch."""

from __future__ import annotations

import ctypes

from devprof.contract import NativeBuild
from devprof.errors import BuildError
from devprof.native.cache import build_info, check_unchanged, find
from devprof.native.facts import missing

__all__ = ["load"]


def load(spec: NativeBuild) -> ctypes.CDLL:
    """Load the library of `spec` from the cache.

    Raises:
        BuildError: it has not been built, is not what was built, cannot be loaded, or was built for another torch; one sentence
            says which.
    """
    path = find(spec)
    if path is None:
        reason = missing(spec)
        how = f"it cannot be built here: {reason}" if reason else f"run `devprof build {spec.name}`"
        raise BuildError(f"the native library {spec.name!r} has not been built for this environment; {how}")
    try:
        check_unchanged(path)
        library = ctypes.CDLL(str(path))
        library.devprof_build_info.restype = ctypes.c_char_p
        found = (library.devprof_build_info() or b"nothing").decode(errors="replace")
    except (OSError, AttributeError) as error:
        raise BuildError(f"the native library {path} cannot be loaded: {error}") from error
    if found != build_info(spec):
        raise BuildError(
            f"{path} was built for [{found}], this process runs [{build_info(spec)}]; remove it and build it again"
        )
    return library
