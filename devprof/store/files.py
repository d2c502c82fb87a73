"""A trace as one ``.devprof`` file, and back; `devprof.store.schema` describes the format."""

from __future__ import annotations

import itertools
import json
import math
import mmap
import os
import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from devprof.errors import TraceFileError
from devprof.store.items import ItemColumn, ItemKind
from devprof.store.schema import check_manifest, manifest_of, places_of, rows_of, tables_of
from devprof.store.trace import COLUMNS, Trace
from devprof.store.written import written_whole

__all__ = ["load", "save"]

_ALIGN = 64
_LOCAL_HEADER_BYTES = 30
_PADDING_ID = 0xD935  # an extra field that zip readers skip
_MOST_MANIFEST_BYTES = 1 << 28
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_PREFIX = len(_NPY_MAGIC) + 2
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<|][iu][1248]|<f[248])', 'fortran_order': False, 'shape': \(((?:\d{1,18},(?: \d{1,18})?)?)\), \} *\n"
)
_TEXT = ("utf-8", "surrogatepass")
_MOST_BITS = 8192
"""Of a whole number in the facts: Python neither writes nor reads very long ones."""
_DAMAGE = (
    TraceFileError,
    zipfile.BadZipFile,
    ValueError,
    KeyError,
    EOFError,
    NotImplementedError,
    OverflowError,
    RecursionError,
)


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as one file, whole or not at all.

    Args:
        trace: the trace.
        path: name of the file, by custom ``NAME.devprof``.

    Raises:
        UsageError: the directory does not exist.
        OSError: it cannot be written.
    """
    with written_whole(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, "manifest.json", _json(manifest_of(trace)).encode(*_TEXT))
        texts = [text.encode(*_TEXT) for text in trace.strings]
        _put(archive, "strings.bin", b"".join(texts))
        _put_array(archive, "strings.npy", np.cumsum([0, *map(len, texts)], dtype=np.int64))
        for key in COLUMNS:
            _put_array(archive, f"columns/{key}.npy", getattr(trace, key))
        for which, columns in (("items", trace.items), ("counters", trace.counters)):
            for number, column in enumerate(columns.values()):
                _put_array(archive, f"{which}/{number}.npy", column.values)
                _put_array(archive, f"{which}/{number}.events.npy", column.events)


def _json(manifest: dict[str, Any]) -> str:
    try:
        return json.dumps(manifest, allow_nan=False)
    except ValueError:  # a fact that JSON has no number for
        return json.dumps(_plain(manifest), allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a value with texts for numbers that are not finite, or that Python does not write for their length."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return hex(value)
    return value


def load(path: str | os.PathLike[str]) -> Trace:
    """Read a file that `save` wrote. Columns are mapped into memory, not read.

    Raises:
        TraceFileError: it is no such file, is damaged, or was written by a later devprof.
        OSError: it cannot be opened.
    """
    with Path(path).open("rb") as file:
        try:
            return _load(file)
        except _DAMAGE as error:
            raise TraceFileError(f"cannot read {os.fspath(path)} as a devprof trace: {error}") from error


def _load(file: IO[bytes]) -> Trace:
    with zipfile.ZipFile(file) as archive:
        members = _Members(file, archive)
        manifest = check_manifest(json.loads(members.bytes("manifest.json", _MOST_MANIFEST_BYTES)))
        columns: dict[str, Any] = {key: members.array(f"columns/{key}.npy", dtype) for key, dtype in COLUMNS.items()}
        if (found := len(columns["start_ns"])) != manifest["events"]:
            raise TraceFileError(f"its manifest says {manifest['events']} events, and it holds {found}")
        return Trace(
            strings=_texts(members, manifest),
            **columns,
            places=places_of(manifest),
            rows=rows_of(manifest),
            items=_items(members, manifest, "items"),
            counters=_items(members, manifest, "counters"),
            window_start_ns=manifest["window_start_ns"],
            window_end_ns=manifest["window_end_ns"],
            facts=manifest["facts"],
        )


def _texts(members: _Members, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    data, offsets = members.bytes("strings.bin"), members.array("strings.npy", np.int64).tolist()
    if (
        len(offsets) != manifest["strings"] + 1
        or offsets[0] != 0
        or offsets[-1] != len(data)
        or offsets != sorted(offsets)
    ):
        raise TraceFileError("its table of texts does not hold together")
    return tuple(data[a:b].decode(*_TEXT) for a, b in itertools.pairwise(offsets))


def _items(members: _Members, manifest: Mapping[str, Any], which: str) -> dict[str, ItemColumn]:
    items: dict[str, ItemColumn] = {}
    for number, (key, kind) in enumerate(tables_of(manifest, which)):
        events, values = members.array(f"{which}/{number}.events.npy", np.int64), members.array(f"{which}/{number}.npy")
        if which == "counters" and kind is not ItemKind.FLOAT:
            raise TraceFileError(f"its counter {key!r} holds {kind.name}")
        items[key] = ItemColumn(kind, events, values)
    return items


class _Members:
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


def _put_array(archive: zipfile.ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    array = np.ascontiguousarray(array)
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    with archive.open(_info(archive, name), "w", force_zip64=True) as member:
        member.write(header.getvalue())
        member.write(array.tobytes() if array.nbytes < _ALIGN else array.data.cast("B"))


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
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
