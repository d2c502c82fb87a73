"""A library's own name is read from the file, and no file can make the reader fail."""

from __future__ import annotations

import ctypes
import random
import struct
from pathlib import Path

import pytest
from cuda_cupti.elf import soname

_HEADER_BYTES, _SEGMENT_BYTES = 64, 56
_ADDRESS = 0x7000  # where the file is mapped: not where it lies


def _elf(name: bytes, *, named: bool = True) -> bytes:
    """Return the least file that says a name: a header, two segments, the dynamic section, its texts."""
    dynamic_at = _HEADER_BYTES + 2 * _SEGMENT_BYTES
    tags = [(1, 1), (5, 0), *([(14, 1)] if named else []), (0, 0), (14, 3)]  # what follows the end is not read
    texts_at = dynamic_at + 16 * len(tags)
    tags[1] = (5, _ADDRESS + texts_at)
    texts = b"\0" + name + b"\0"
    total = texts_at + len(texts)
    header = struct.pack("<16s2HI3QI6H", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, _HEADER_BYTES, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<2I6Q", 1, 5, 0, _ADDRESS, 0, total, total, 4096)
    dynamic = struct.pack("<2I6Q", 2, 6, dynamic_at, _ADDRESS + dynamic_at, 0, 16 * len(tags), 16 * len(tags), 8)
    return header + load + dynamic + b"".join(struct.pack("<2Q", *tag) for tag in tags) + texts


def _soname(folder: Path, data: bytes) -> str:
    path = folder / "some.so"
    path.write_bytes(data)
    return soname(str(path))


def test_the_name_is_the_one_that_the_file_was_built_under(tmp_path: Path) -> None:
    assert _soname(tmp_path, _elf(b"libcupti.so.13")) == "libcupti.so.13"
    assert _soname(tmp_path, _elf(b"libcupti.so.13", named=False)) == ""


def test_a_library_of_this_system_says_its_name() -> None:
    ctypes.CDLL("libm.so.6")
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    path = next(line.split()[-1] for line in maps if line.endswith("libm.so.6"))
    assert soname(path) == "libm.so.6"


@pytest.mark.parametrize(
    "data", [b"", b"hi", b"\x7fELF\x01\x01" + bytes(200), b"\x7fELF\x02\x02" + bytes(200), bytes(64)]
)
def test_another_format_has_no_name(tmp_path: Path, data: bytes) -> None:
    assert _soname(tmp_path, data) == ""


def test_what_is_not_there_or_no_file_has_no_name(tmp_path: Path) -> None:
    assert [soname(str(path)) for path in (tmp_path, tmp_path / "none", "a\0b")] == ["", "", ""]


def test_a_file_that_is_cut_off_has_no_name_or_a_part_of_it(tmp_path: Path) -> None:
    whole = _elf(b"libcupti.so.13")
    for length in range(len(whole)):
        assert "libcupti.so.13".startswith(_soname(tmp_path, whole[:length]))


def test_wrong_numbers_anywhere_do_no_harm(tmp_path: Path) -> None:
    whole, numbers = _elf(b"libcupti.so.13"), random.Random(5)
    for at in range(6, len(whole) - 8):
        for wrong in (b"\xff" * 8, numbers.randbytes(8)):
            assert isinstance(_soname(tmp_path, whole[:at] + wrong + whole[at + 8 :]), str)
