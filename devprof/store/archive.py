"""Members of a zip archive without compression: bytes, and arrays that can be mapped into memory.

What is written is plain: numbers in C order, with the header that `numpy.load` reads. What is read is matched against that form
and never evaluated, so that a hostile file is refused and not run.
"""

from __future__ import annotations

import itertools
import mmap
import re
import zipfile
from collections.abc import Iterable
from io import BytesIO
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from devprof.errors import TraceFileError

__all__ = ["DAMAGE", "TEXT", "Members", "put", "put_array", "put_texts", "texts_of"]

_ALIGN = 64
_LOCAL_HEADER_BYTES = 30
_PADDING_ID = 0xD935  # an extra field that zip readers skip
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_PREFIX = len(_NPY_MAGIC) + 2
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<|][iu][1248]|<f[248])', 'fortran_order': False, 'shape': \(((?:\d{1,18},(?: \d{1,18})?)?)\), \} *\n"
)
TEXT = ("utf-8", "surrogatepass")
"""How texts are encoded, for `str.encode` and `bytes.decode`."""
DAMAGE = (
    TraceFileError,
    zipfile.BadZipFile,
    ValueError,
    KeyError,
    EOFError,
    NotImplementedError,
    OverflowError,
    RecursionError,
)
"""What reading a damaged archive may raise."""


def put_texts(archive: zipfile.ZipFile, texts: Iterable[str]) -> None:
    """Write a table of texts: ``strings.bin`` and where each begins in it."""
    encoded = [text.encode(*TEXT) for text in texts]
    put(archive, "strings.bin", b"".join(encoded))
    put_array(archive, "strings.npy", np.cumsum([0, *map(len, encoded)], dtype=np.int64))


def texts_of(members: Members, count: int) -> tuple[str, ...]:
    """Return the table of texts that `put_texts` wrote.

    Raises:
        TraceFileError: there are not `count` texts, or the two members do not fit each other.
    """
    data, offsets = members.bytes("strings.bin"), members.array("strings.npy", np.int64).tolist()
    if len(offsets) != count + 1 or offsets[0] != 0 or offsets[-1] != len(data) or offsets != sorted(offsets):
        raise TraceFileError("its table of texts does not hold together")
    return tuple(data[a:b].decode(*TEXT) for a, b in itertools.pairwise(offsets))


class Members:
    """Members of an archive, mapped into memory where they are arrays."""

    def __init__(self, file: IO[bytes], archive: zipfile.ZipFile) -> None:
        self._archive = archive
        # the map outlives the file; arrays keep it alive
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def bytes(self, name: str, most: int | None = None) -> bytes:
        """Return a member's bytes."""
        begin, size = self._place(name)
        if most is not None and size > most:
            raise TraceFileError(f"its {name} has {size} bytes; more than {most} are not read")
        return self._map[begin : begin + size]

    def array(self, name: str, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Return a member as an array that is mapped into memory."""
        begin, size = self._place(name)
        header = self._map[begin : begin + min(size, 4096)]
        shape, found, data_at = _npy_header(name, header)
        if dtype is not None and found != dtype:
            raise TraceFileError(f"its {name} holds {found}, expected {np.dtype(dtype)}")
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if data_at + count * found.itemsize != size:
            raise TraceFileError(f"its {name} has {size - data_at} bytes of data, expected {count * found.itemsize}")
        if not count:
            return np.empty(shape, dtype=found)
        return np.frombuffer(self._map, dtype=found, count=count, offset=begin + data_at).reshape(shape)

    def _place(self, name: str) -> tuple[int, int]:
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise TraceFileError(f"its {name} is compressed")
        at = info.header_offset
        header = self._map[at : at + _LOCAL_HEADER_BYTES]
        if len(header) < _LOCAL_HEADER_BYTES or header[:4] != b"PK\x03\x04":
            raise TraceFileError(f"its {name} is not where it should be")
        begin = (
            at + _LOCAL_HEADER_BYTES + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        )
        if begin + info.file_size > len(self._map):
            raise TraceFileError(f"it ends within {name}")
        return begin, info.file_size


def _npy_header(name: str, data: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape, dtype and where the data begins.

    Only plain numbers in C order are taken, as `save` writes them. numpy's own parser evaluates text, and fails in many ways.
    """
    size = int.from_bytes(data[8:10], "little")
    header = data[_NPY_PREFIX : _NPY_PREFIX + size]
    found = _NPY_HEADER.fullmatch(header)
    if data[:8] != _NPY_MAGIC or found is None:
        raise TraceFileError(f"its {name} is no array that a column can be; its header is {header[:80]!r}")
    shape = tuple(int(number) for number in found[2].replace(b",", b" ").split())
    return shape, np.dtype(found[1].decode()), _NPY_PREFIX + size


def put_array(archive: zipfile.ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    """Write an array; its data begins at a multiple of 64 bytes."""
    array = np.ascontiguousarray(array)
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    with archive.open(_info(archive, name), "w", force_zip64=True) as member:
        member.write(header.getvalue())
        member.write(array.tobytes() if array.nbytes < _ALIGN else array.data.cast("B"))


def put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Write bytes."""
    with archive.open(_info(archive, name), "w", force_zip64=True) as member:
        member.write(data)


def _info(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Describe the next member, padded so that its data begins at a multiple of 64 bytes."""
    info = zipfile.ZipInfo(name)  # with zip's first date: the same trace gives the same bytes
    zip64_bytes = 20  # `force_zip64` puts its own extra field before ours
    assert archive.fp is not None
    begin = archive.fp.tell() + _LOCAL_HEADER_BYTES + len(name.encode()) + zip64_bytes + 4
    padding = -begin % _ALIGN
    info.extra = _PADDING_ID.to_bytes(2, "little") + padding.to_bytes(2, "little") + bytes(padding)
    return info
