"""`NativeBuild`: a native library that a package carries as sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["NativeBuild"]


@dataclass(frozen=True, slots=True)
class NativeBuild:
    """Sources of one shared library, for ``devprof build``.

    The library must export ``const char* devprof_build_info(void)``: the text of the macro ``DEVPROF_BUILD_INFO``, which the
    builder defines; it is compared with the running torch when the library is loaded.

    Attributes:
        name: short name of letters, digits, ``_``, ``.`` and ``-``, such as ``"openreg"``; also the stem of the library's file.
        sources: C++ files to compile, absolute paths; a C file is compiled as C++.
        headers: files that the sources include; they are part of the cache key.
        include_dirs: directories to search, beside torch's own.
        needs_torch: compile and link against the installed torch (C++20, its ABI, its headers, Kineto's included).
        needs_python: compile against the running interpreter's headers.
        flags: further compiler flags.
        description: one line for ``devprof build`` and ``devprof doctor``.
    """

    name: str
    sources: tuple[Path, ...]
    headers: tuple[Path, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    needs_torch: bool = True
    needs_python: bool = False
    flags: tuple[str, ...] = ()
    description: str = ""
