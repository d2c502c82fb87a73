"""The buffers in `golden`, for tests that replay them."""

from __future__ import annotations

import gzip
import json
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cuda_cupti.decode import Records, decode, merged
from cuda_cupti.devices import DeviceFacts
from cuda_cupti.layouts import Layout

__all__ = ["GoldenRun", "golden_run", "write_golden_run"]

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


def golden_run(name: str, folder: Path = FOLDER) -> GoldenRun:
    """Read a run; Kineto's trace is empty where there is none beside it."""
    about = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    raw, at, buffers = gzip.decompress((folder / f"{name}.bin.gz").read_bytes()), 0, []
    while at < len(raw):
        (size,) = struct.unpack_from("<I", raw, at)
        buffers.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    kineto = folder / f"{name}_kineto.json.gz"
    return GoldenRun(
        tuple(buffers),
        Layout(about["cupti_version"], {int(kind): stride for kind, stride in about["strides"].items()}),
        {int(pointer): text.encode() for pointer, text in about["names"].items()},
        DeviceFacts(**about["device"]),
        about,
        json.loads(gzip.decompress(kineto.read_bytes())) if kineto.exists() else {},
    )


def write_golden_run(name: str, run: GoldenRun, folder: Path) -> None:
    """Write a run as `golden_run` reads it; Kineto's trace is not written."""
    counts = {str(int(kind)): len(rows) for kind, rows in merged(run.records()).of.items()}
    device = asdict(run.facts)
    del device["uuid"]  # says which GPU it was, and nothing depends on it
    about = {
        "cupti_version": run.layout.version,
        "strides": {str(int(kind)): stride for kind, stride in run.layout.strides.items()},
        "names": {str(pointer): text.decode("utf-8", "replace") for pointer, text in run.names.items()},
        **run.about,
        "device": device,
        "counts": counts,
    }
    raw = b"".join(struct.pack("<I", len(one)) + one for one in run.buffers)
    (folder / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.bin.gz").write_bytes(gzip.compress(raw, mtime=0))
