"""Analyses of a loaded trace of 10k to 1M events: what each costs per event, beside HTA's same call, against a plain recount.

``python -m benchmarks analyses=10_000_000`` goes further, where there is memory: loading takes about 0.5 KiB per event.

All run on the same Kineto file, each side in a process of its own; figures are medians of processor time. ``HTA_PYTHON`` names
the interpreter of an environment that has HolisticTraceAnalysis; else this one is tried. HTA's load takes minutes at a
million events and its calls cost much the same per event, so it runs at 100k.

Both sides keep the memory that they free (``MALLOC_*_``): on virtual machines a fresh page may cost more than what is computed
in it, and that would be measured instead.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.analyse_once import LABELED
from benchmarks.kineto_file import write_kineto_file
from benchmarks.recount import recount
from benchmarks.setting import Gate
from devprof.native import build, missing
from devprof.store.readers import JSON

__all__ = ["gates"]

SMALLEST, MIDDLE, LARGEST = 10_000, 100_000, 1_000_000
HERE = Path(__file__).parent
BOUND_NS, BOUND_OF_AVERAGES_NS = 25, 100
TIMES, TIMES_OF_IDLE = 20, 5
GROWTH = 1.2
KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**31), "MALLOC_MMAP_THRESHOLD_": str(2**30)}
_COMPARED = {
    "diff": "; HTA's call finds the step of every event first, each time it is called",
    LABELED: "; without that, what is left of HTA's is a grouping in pandas: not held to the bound",
}
"""What a ratio is made of, where the two sides do not do the same."""

Found = dict[str, Any]


def gates(largest: int = LARGEST) -> Iterator[Gate]:
    """Measure up to a number of events, and yield the figures as they come."""
    if not missing(JSON):
        build(JSON)
    own: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in sorted({SMALLEST, MIDDLE, largest}):
            path = Path(folder) / f"{size}.json"
            n = write_kineto_file(path, size)
            ours = _once("devprof", path)
            own[size] = {name: seconds / n * 1e9 for name, seconds in ours["seconds"].items()}
            own[size]["diff"] /= 2  # of two traces
            yield from _costs(size, own[size])
            if size == MIDDLE:
                yield from _exact(path, _once("devprof-found", path)["found"])
                yield from _beside_hta(path, ours)
            if size == largest:
                yield from _memory(size, ours, path.stat().st_size)
            path.unlink()
    bound = GROWTH if largest == LARGEST else None
    for name, cost in own[largest].items():
        detail = f"{cost:.3g} / {own[MIDDLE][name]:.3g} ns"
        yield Gate(
            f"analyses: {name}: cost per event, {largest} / {MIDDLE}", cost / own[MIDDLE][name], bound, detail=detail
        )


def _memory(size: int, found: Found, file_bytes: int) -> Iterator[Gate]:
    """Say what the process took at most; and what each analysis takes beside the trace, while it computes."""
    for what, peak in (("loading", found["loaded_bytes"]), ("all analyses", found["peak_bytes"])):
        detail = f"{peak / 2**20:.0f} MiB in all; the file has {file_bytes / 2**20:.0f} MiB"
        yield Gate(f"analyses: peak memory of the process, {what} of {size}, per event", peak / size, None, "B", detail)
    for name, peak in found["beside_bytes"].items():
        yield Gate(f"analyses: {name} of {size}: memory beside the trace, per event", peak / size, None, "B")


def _costs(size: int, cost_ns: dict[str, float]) -> Iterator[Gate]:
    for name, ns in cost_ns.items():
        bound = BOUND_OF_AVERAGES_NS if name == "key_averages" else BOUND_NS
        # below that the calls themselves are measured, not the events
        yield Gate(f"analyses: {name} of {size} events, per event", ns, bound if size >= MIDDLE else None, "ns")


def _exact(path: Path, found: Found) -> Iterator[Gate]:
    """Compare all figures with those of a plain recount of the file, to the nanosecond."""
    base_ns = json.loads(path.read_text("utf-8"))["baseTimeNanoseconds"]
    expected = recount(path)
    ours = {
        "device_breakdown": {
            r["name"]: [r[k] for k in ("count", "total_ns", "min_ns", "max_ns")] for r in found["device_breakdown"]
        },
        "stream_usage": {
            int(r["stream"] or s): [r["count"], r["busy_ns"], sum(v for k, v in r.items() if k.startswith("idle_"))]
            for s, r in zip(sorted(expected["stream_usage"]), found["stream_usage"], strict=True)
        },
        "overlap": found["overlap"][0]["busy_ns"],
        "queue_length": [[r["time_ns"] - base_ns, r["queued"]] for r in found["queue_length"]],
        "steps": [
            [r["start_ns"] - base_ns, r["duration_ns"], *(v for k, v in r.items() if k.startswith("busy"))]
            for r in found["steps"]
        ],
    }
    for name, value in expected.items():
        wrong = int(value != ours[name])
        yield Gate(f"analyses: {name}: tables that differ from a plain recount", wrong, 0, "of 1")


def _beside_hta(path: Path, ours: Found) -> Iterator[Gate]:
    if not _has_hta():
        yield Gate("analyses: each call / HTA's", float("nan"), None, detail="peer not installed")
        return
    theirs = _once("hta", path)
    bounds = {"stream_usage": 1 / TIMES_OF_IDLE, LABELED: None}
    for name, seconds in theirs["seconds"].items():
        own = ours["seconds"][name.partition(" ")[0]]
        detail = f"{1000 * own:.3g} / {1000 * seconds:.3g} ms" + _COMPARED.get(name, "")
        yield Gate(f"analyses: {name} / HTA's", own / seconds, bounds.get(name, 1 / TIMES), detail=detail)
    total_us = ours["work_ns"] / 1000
    detail = "HTA cuts off what is below a whole microsecond, of starts and durations"
    yield Gate("analyses: sum of HTA's kernel times / devprof's", theirs["kernel_us"] / total_us, None, detail=detail)


def _once(side: str, path: Path) -> Found:
    python = _hta_python() if side == "hta" else sys.executable
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)} | KEEPS_MEMORY
    command = [python, str(HERE / "analyse_once.py"), side, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=path.parent, env=environment)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def _hta_python() -> str:
    return os.environ.get("HTA_PYTHON", sys.executable)


@functools.cache
def _has_hta() -> bool:
    return subprocess.run([_hta_python(), "-c", "import hta"], capture_output=True, check=False).returncode == 0
