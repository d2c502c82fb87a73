"""What the numbers in an Nsight Systems export are called, by its own `ENUM_*` tables where it has them."""

from __future__ import annotations

import re
from typing import NamedTuple

from devprof.store.readers.cuda_names import COPY_KINDS, MEMORY_KINDS
from devprof.store.readers.device_work import Words
from devprof.store.readers.sqlite import Database

__all__ = ["NvtxTypes", "nvtx_types", "read_words"]

_COPY = re.compile(r"([HDAP])TO([HDAP])")


class NvtxTypes(NamedTuple):
    """Numbers of the kinds of record in `NVTX_EVENTS`.

    Attributes:
        push_pop: a range of one thread.
        start_end: a range that may end on another thread.
        mark: an instant.
        domain: names a domain.
    """

    push_pop: int = 59
    start_end: int = 60
    mark: int = 34
    domain: int = 75


_NVTX_NAMES = {
    "NvtxPushPopRange": "push_pop",
    "NvtxStartEndRange": "start_end",
    "NvtxMark": "mark",
    "NvtxDomainCreate": "domain",
}


def read_words(database: Database) -> Words:
    """Return the words for copies and memory; memory kinds begin at 0 here, and at 1 in CUPTI."""
    copies = dict(COPY_KINDS)
    for number, name in database.texts("ENUM_CUDA_MEMCPY_OPER", "id", "name").items():
        if ways := _COPY.search(name):
            copies[number] = f"{ways[1]}to{ways[2]}"
    memory = {number - 1: word for number, word in MEMORY_KINDS.items()}
    memory |= database.texts("ENUM_CUDA_MEM_KIND", "id", "label")
    return Words(copies, memory, "memKind")


def nvtx_types(database: Database) -> NvtxTypes:
    """Return the numbers of the kinds of NVTX records."""
    names = database.texts("ENUM_NSYS_EVENT_TYPE", "id", "name")
    return NvtxTypes(**{_NVTX_NAMES[name]: number for number, name in names.items() if name in _NVTX_NAMES})
