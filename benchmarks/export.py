"""Writing Chrome JSON from columns, beside `json.dump` of the same events, and Kineto's own C++ writer of the same profile.

An event is a kernel with eight args. Costs are processor time, so that the disk is not measured. The peer of Kineto runs in
a process of its own: one torch profile with a plugin's kernels in it, written by both. Each of devprof's two writers of
events, the native one and the one in Python, is measured; the first one where it is built or can be.
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.setting import Gate, cpu_us, in_own_process, peak_bytes
from benchmarks.writers import REPEATS, median_us, taking, writers
from devprof.export import chrome_trace, in_background
from devprof.model import ActivityType
from devprof.store import ItemColumn, ItemKind, Place, PlaceKind, Row, Trace

__all__ = ["gates", "kernels"]

SIZES = (10_000, 100_000, 1_000_000)
PEER_SIZE = 100_000
HERE = Path(__file__).parent
N_NAMES = 200
SWITCH = "DEVPROF_JSON_WRITER"
TO_KINETO = {"native": 0.5, "python": 1.1}
TO_JSON_DUMP = {"native": 0.05, "python": 0.1}
GROWTH = {"native": 1.2, "python": 1.2}
MEMORY_MIB = 20
GAP_MS = 200
TICK_S = 0.001


def kernels(n: int) -> Trace:
    """Return a trace of `n` kernels on four streams, with eight args each, four of them the record's own."""
    random = np.random.default_rng(0)
    events = np.arange(n)
    start = 1_790_857_026_000_000_000 + 5 * 10**15 + np.cumsum(random.integers(1000, 5000, n))
    kind = random.integers(0, N_NAMES, n)
    zeros = np.zeros(n, dtype=np.int64)
    items = {
        "registers per thread": ItemColumn(ItemKind.INT, events, 16 + kind % 48),
        "shared memory": ItemColumn(ItemKind.INT, events, kind % 4 * 1024),
        "grid": ItemColumn(ItemKind.INT_LIST, events, random.integers(1, 64, (n, 3))),
        "block": ItemColumn(ItemKind.INT_LIST, events, np.tile([128, 1, 1], (n, 1))),
    }
    return Trace(
        strings=tuple(
            f"void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>_{i}" for i in range(N_NAMES)
        ),
        activity_type=np.full(n, ActivityType.CONCURRENT_KERNEL, dtype=np.uint8),
        name=kind.astype(np.int32),
        start_ns=start,
        end_ns=start + random.integers(500, 900, n),
        row=(events % 4).astype(np.int32),
        id=2**30 + events,
        linked=events + 1,
        linked_user=zeros,
        flow_id=zeros,
        flow_type=zeros.astype(np.uint8),
        flow_start=zeros.astype(np.uint8),
        parent=np.full(n, -1, dtype=np.int32),
        places=(Place(0, PlaceKind.DEVICE, "bench 0", backend="bench"),),
        rows=tuple(Row(0, stream) for stream in range(4)),
        items=items,
        window_start_ns=int(start[0]),
        window_end_ns=int(start[-1]) + 1000,
    )


def gates() -> Iterator[Gate]:
    """Measure, and yield the figures as they come."""
    ways = writers()
    with tempfile.TemporaryDirectory() as folder:
        for writer in ways:
            with taking(SWITCH, writer):
                yield from _by_size(writer, Path(folder) / "trace.json")
                yield from _beside_json(writer, folder)
                yield _longest_gap(writer, Path(folder) / "trace.json")
        if "native" in ways:
            yield from _beside_python(Path(folder))
    for writer in ways:
        with taking(SWITCH, writer):
            peer = in_own_process("benchmarks.export", PEER_SIZE)
        detail = f"{peer['devprof_us']:.2f} / {peer['kineto_us']:.2f} us"
        ratio = peer["devprof_us"] / peer["kineto_us"]
        yield Gate(
            f"export ({writer}): of one torch profile / Kineto's writer", ratio, TO_KINETO[writer], detail=detail
        )


def _by_size(writer: str, path: Path) -> Iterator[Gate]:
    own: dict[int, float] = {}
    for n in SIZES:
        trace = kernels(n)
        own[n] = median_us(lambda trace=trace: chrome_trace(trace, path)) / n  # type: ignore[misc]  # bound now
        yield Gate(f"export ({writer}): {n} kernels with 8 args as Chrome JSON, per event", own[n], None, "us")
    small, large = own[min(SIZES)], own[max(SIZES)]
    detail = f"{large:.2f} / {small:.2f} us"
    yield Gate(f"export ({writer}): cost per event, 1M / 10k", large / small, GROWTH[writer], detail=detail)
    used = peak_bytes(lambda: chrome_trace(trace, path)) / 2**20
    yield Gate(f"export ({writer}): memory beside the trace, 1M events", used, MEMORY_MIB, "MiB")


def _beside_json(writer: str, folder: str) -> Iterator[Gate]:
    plain, packed, copy = (Path(folder) / name for name in ("trace.json", "trace.json.gz", "copy.json"))
    trace = kernels(PEER_SIZE)
    chrome_trace(trace, plain)
    with plain.open(encoding="utf-8") as file:
        objects = json.load(file)

    def dump() -> None:
        with copy.open("w", encoding="utf-8") as file:
            json.dump(objects, file)

    ours, theirs = _alternated_us(lambda: chrome_trace(trace, plain), dump)
    detail = f"{ours / PEER_SIZE:.2f} / {theirs / PEER_SIZE:.2f} us"
    name = f"export ({writer}): per event / json.dump of the same events"
    yield Gate(name, ours / theirs, TO_JSON_DUMP[writer], detail=detail)
    data = plain.read_bytes()
    ours, theirs = _alternated_us(
        lambda: chrome_trace(trace, packed), lambda: gzip.compress(data, compresslevel=9), repeats=2
    )
    detail = (
        f"{ours / PEER_SIZE:.2f} / {theirs / PEER_SIZE:.2f} us, {packed.stat().st_size / PEER_SIZE:.0f} B per event"
    )
    name = f"export ({writer}): written and packed / packing alone at gzip's default level"
    yield Gate(name, ours / theirs, None, detail=detail)


def _beside_python(folder: Path) -> Iterator[Gate]:
    """Yield what the native writer takes of the time of the one in Python, and whether the files are the same."""
    trace = kernels(PEER_SIZE)

    def write(writer: str) -> None:
        with taking(SWITCH, writer):
            chrome_trace(trace, folder / "trace.json")

    files = []
    for writer in ("native", "python"):
        write(writer)
        files.append((folder / "trace.json").read_bytes())
    if files[0] != files[1]:
        raise AssertionError("the two writers make different files")
    native, python = _alternated_us(lambda: write("native"), lambda: write("python"))
    detail = f"{native / PEER_SIZE:.2f} / {python / PEER_SIZE:.2f} us, the same bytes"
    yield Gate("export: native / Python", native / python, None, detail=detail)


def _longest_gap(writer: str, path: Path) -> Gate:
    """Return for how long a thread that wakes every millisecond slept while a million events are written in the background."""
    trace = kernels(max(SIZES))
    export = in_background(chrome_trace, trace, path)
    last, longest = time.monotonic(), 0.0
    while not export.done:
        time.sleep(TICK_S)
        now = time.monotonic()
        last, longest = now, max(longest, now - last)
    export.wait()
    name = f"export ({writer}): longest gap of a heartbeat beside a background export of 1M events"
    return Gate(name, longest * 1000, GAP_MS, "ms")


def _alternated_us(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = REPEATS
) -> tuple[float, float]:
    """Return the medians of two that run in alternation, us."""
    pairs = [(cpu_us(ours), cpu_us(theirs)) for _ in range(repeats)]
    return statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs)


def _torch_profile(n: int) -> dict[str, float]:
    """Write one profile with `n` kernels both ways, and return what each takes per event."""
    from benchmarks.profiled import profile_of_kernels
    from devprof.torch import trace_of

    prof = profile_of_kernels(n, "bench-export")
    trace = trace_of(prof)  # from now on, Kineto's writer runs as often as it is asked
    with tempfile.TemporaryDirectory() as folder:
        ours, kineto = _alternated_us(
            lambda: chrome_trace(trace, Path(folder) / "devprof.json"),
            lambda: prof.export_chrome_trace(str(Path(folder) / "kineto.json")),
        )
    return {"devprof_us": ours / len(trace), "kineto_us": kineto / len(trace)}


if __name__ == "__main__":
    print(json.dumps(_torch_profile(int(sys.argv[1]))))
