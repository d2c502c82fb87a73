"""The name that a library was built under, whatever its file is called: an ELF file's SONAME.

Source: ``elf.h``, for 64 bits and the low byte first, as on every machine with NVIDIA's driver.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

__all__ = ["soname"]

_IDENT = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<16s2HI3QI6H")  # Elf64_Ehdr
_SEGMENT = struct.Struct("<2I6Q")  # Elf64_Phdr
_ENTRY = struct.Struct("<2Q")  # Elf64_Dyn
_LOAD, _DYNAMIC = 1, 2  # p_type
_NULL, _STRTAB, _SONAME = 0, 5, 14  # d_tag
_MOST_ENTRIES, _MOST_NAME_BYTES = 4096, 256

_Segment = tuple[int, ...]


def soname(path: str) -> str:
    """Return the name, empty where the file says none, is of another format, is cut off, or cannot be read."""
    try:
        with Path(path).open("rb") as file:
            segments = _segments(file)
            return _name(file, segments, _entries(file, segments))
    except (OSError, ValueError, OverflowError, struct.error):
        return ""


def _segments(file: BinaryIO) -> list[_Segment]:
    ident, *_, at, _, _, _, size, count, _, _, _ = _HEADER.unpack(file.read(_HEADER.size))
    if not ident.startswith(_IDENT) or size != _SEGMENT.size:
        return []
    return list(_SEGMENT.iter_unpack(_read(file, at, size * count)))


def _entries(file: BinaryIO, segments: Sequence[_Segment]) -> dict[int, int]:
    """Return the values of the dynamic section by tag, up to its end."""
    found: dict[int, int] = {}
    for kind, _, at, _, _, size, _, _ in segments:
        if kind != _DYNAMIC:
            continue
        for tag, value in _ENTRY.iter_unpack(_read(file, at, min(size // _ENTRY.size, _MOST_ENTRIES) * _ENTRY.size)):
            if tag == _NULL:
                break
            found[tag] = value
    return found


def _name(file: BinaryIO, segments: Sequence[_Segment], entries: dict[int, int]) -> str:
    if _SONAME not in entries or _STRTAB not in entries:
        return ""
    address = entries[_STRTAB] + entries[_SONAME]
    for kind, _, at, start, _, size, _, _ in segments:
        if kind == _LOAD and start <= address < start + size:
            return _read(file, at + address - start, _MOST_NAME_BYTES).split(b"\0")[0].decode("utf-8", "replace")
    return ""


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)
