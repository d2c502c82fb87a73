"""The buffers in `golden`, for tests that replay them."""

from __future__ import annotations

import gzip
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda_cupti.decode import Records, decode
from cuda_cupti.devices import DeviceFacts
from cuda_cupti.layouts import Layout

__all__ = ["GoldenRun", "golden_run"]

FOLDER = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class GoldenRun:
    """A recorded program.

    Attributes:
        buffers: completed buffers, valid bytes only.
        layout: the library's calibrated layout.
        names: text by pointer.
        facts: the device.
        about: the rest of the JSON file.
        kineto: Kineto's trace of the same program.
    """

    buffers: tuple[bytes, ...]
    layout: Layout
    names: dict[int, bytes]
    facts: DeviceFacts
    about: dict[str, Any]
    kineto: dict[str, Any]

    def records(self) -> list[Records]:
        return [decode(buffer, self.layout, self.names.get) for buffer in self.buffers]


def golden_run(name: str) -> GoldenRun:
    about = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    raw, at, buffers = gzip.decompress((FOLDER / f"{name}.bin.gz").read_bytes()), 0, []
    while at < len(raw):
        (size,) = struct.unpack_from("<I", raw, at)
        buffers.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    return GoldenRun(
        tuple(buffers),
        Layout(about["cupti_version"], {int(kind): stride for kind, stride in about["strides"].items()}),
        {int(pointer): text.encode() for pointer, text in about["names"].items()},
        DeviceFacts(**about["device"]),
        about,
        json.loads(gzip.decompress((FOLDER / f"{name}_kineto.json.gz").read_bytes())),
    )
