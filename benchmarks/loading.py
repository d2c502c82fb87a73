"""Loading a Kineto file, beside `json.load` of the same file, and HTA's loader where there is one; and reopening a saved trace.

Each load has a process of its own, and the figures are its processor time, per complete event, and its peak memory over what it
held before. ``HTA_PYTHON`` names the interpreter of an environment that has HolisticTraceAnalysis; else this one is tried.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.kineto_file import write_kineto_file
from benchmarks.setting import Gate
from devprof.native import build, missing
from devprof.pipeline.files import load
from devprof.store import save
from devprof.store.readers import JSON

__all__ = ["gates"]

SIZES = (10_000, 100_000, 1_000_000)
MIDDLE, LARGEST = SIZES[1:]
HERE = Path(__file__).parent
HTA_BOUNDS = {MIDDLE: 15, LARGEST: 45}


class Cost(NamedTuple):
    """What a load costs.

    Attributes:
        us: processor time per complete event.
        peak_bytes: memory.
    """

    us: float
    peak_bytes: float


def gates() -> Iterator[Gate]:
    """Measure, and yield the figures as they come."""
    if not missing(JSON):
        build(JSON)
    with tempfile.TemporaryDirectory() as folder:
        own: dict[int, Cost] = {}
        for size in SIZES:
            path = Path(folder) / f"{size}.json"
            n = write_kineto_file(path, size)
            own[size], peer = _median(("devprof", "json"), path, n)
            yield _ratio(f"loading {n} events / json.load", own[size], peer, 1)
            yield from _packed(path, n)
            if size in HTA_BOUNDS:
                yield from _reopened(path, n, own[size])
                yield from _beside_hta(path, n, own[size], HTA_BOUNDS[size])
            if size == MIDDLE:
                yield from _in_python(path, n, peer)
            if size == LARGEST:
                growth = own[LARGEST].us / own[MIDDLE].us
                yield Gate("loading: cost per event, 1M / 100k", growth, 1.2, detail=f"{own[size].us:.3g} us")
                yield Gate("loading: peak memory at 1M / the file", own[size].peak_bytes / path.stat().st_size, 3)
                detail = f"{own[size].peak_bytes / 2**20:.0f} / {peer.peak_bytes / 2**20:.0f} MiB"
                yield Gate("loading: memory / json.load", own[size].peak_bytes / peer.peak_bytes, 1, detail=detail)
            path.unlink()


def _packed(path: Path, n: int) -> Iterator[Gate]:
    packed = path.with_suffix(".json.gz")
    with path.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    ours, theirs = _median(("devprof", "json"), packed, n)
    packed.unlink()
    yield _ratio(f"loading {n} events, packed / json.load", ours, theirs, 1)


def _reopened(path: Path, n: int, parsed: Cost) -> Iterator[Gate]:
    saved = path.with_suffix(".devprof")
    save(load(path), saved)
    yield _ratio(
        f"reopening {n} saved events / parsing their JSON", _median(("devprof-saved",), saved, n)[0], parsed, 1 / 20
    )
    saved.unlink()


def _in_python(path: Path, n: int, peer: Cost) -> Iterator[Gate]:
    for loader, what in (("devprof-python", "msgspec's decoder"), ("devprof-stdlib", "the standard library's decoder")):
        yield _ratio(f"loading {n} events by {what} / json.load", _median((loader,), path, n)[0], peer, None)


def _beside_hta(path: Path, n: int, own: Cost, times: int) -> Iterator[Gate]:
    if not _has_hta():
        return
    theirs = _once("hta", path, n)
    yield _ratio(f"loading {n} events / HTA's loader", own, theirs, 1 / times)
    detail = f"{own.peak_bytes / 2**20:.0f} / {theirs.peak_bytes / 2**20:.0f} MiB"
    yield Gate(f"loading {n} events: memory / HTA's", own.peak_bytes / theirs.peak_bytes, 0.5, detail=detail)


def _ratio(name: str, ours: Cost, theirs: Cost, bound: float | None) -> Gate:
    return Gate(name, ours.us / theirs.us, bound, detail=f"{ours.us:.3g} / {theirs.us:.3g} us")


def _median(loaders: tuple[str, ...], path: Path, n: int) -> list[Cost]:
    """Return the median costs of loaders that run in alternation."""
    rounds = [[_once(loader, path, n) for loader in loaders] for _ in range(3 if n > MIDDLE * 2 else 5)]
    return [Cost(*map(statistics.median, zip(*costs, strict=True))) for costs in zip(*rounds, strict=True)]


def _once(loader: str, path: Path, n: int) -> Cost:
    python = _hta_python() if loader == "hta" else sys.executable
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    command = [python, str(HERE / "load_once.py"), loader, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=path.parent, env=environment)
    found = json.loads(done.stdout.splitlines()[-1])
    return Cost(found["seconds"] / n * 1e6, found["bytes"])


def _hta_python() -> str:
    return os.environ.get("HTA_PYTHON", sys.executable)


@functools.cache
def _has_hta() -> bool:
    return subprocess.run([_hta_python(), "-c", "import hta"], capture_output=True, check=False).returncode == 0
