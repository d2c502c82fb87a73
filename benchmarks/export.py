"""Writing Chrome JSON from columns, beside `json.dump` of the same events, and Kineto's own C++ writer of the same profile.

An event is a kernel with eight args. Costs are processor time, so that the disk is not measured. The peer of Kineto runs in
a process of its own: one torch profile with a plugin's kernels in it, written by both.
"""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.setting import Gate
from devprof.export import chrome_trace
from devprof.model import ActivityType
from devprof.store import ItemColumn, ItemKind, Place, PlaceKind, Row, Trace

__all__ = ["gates", "kernels"]

SIZES = (10_000, 100_000, 1_000_000)
PEER_SIZE = 100_000
REPEATS = 5
HERE = Path(__file__).parent
N_NAMES = 200


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
    own: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        for n in SIZES:
            trace = kernels(n)
            own[n] = _median_us(lambda trace=trace: chrome_trace(trace, path)) / n  # type: ignore[misc]  # bound now
            yield Gate(f"export: {n} kernels with 8 args as Chrome JSON, per event", own[n], None, "us")
        small, large = own[min(SIZES)], own[max(SIZES)]
        yield Gate("export: cost per event, 1M / 10k", large / small, 1.2, detail=f"{large:.2f} / {small:.2f} us")
        yield Gate("export: memory beside the trace, 1M events", _used_bytes(trace, path) / 2**20, 20, "MiB")
        yield from _beside_json(folder)
    peer = _run_peer()
    detail = f"{peer['devprof_us']:.2f} / {peer['kineto_us']:.2f} us"
    yield Gate(
        "export: of one torch profile / Kineto's writer", peer["devprof_us"] / peer["kineto_us"], 1.1, detail=detail
    )


def _beside_json(folder: str) -> Iterator[Gate]:
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
    yield Gate("export: per event / json.dump of the same events", ours / theirs, 0.1, detail=detail)
    data = plain.read_bytes()
    ours, theirs = _alternated_us(
        lambda: chrome_trace(trace, packed), lambda: gzip.compress(data, compresslevel=9), repeats=2
    )
    detail = (
        f"{ours / PEER_SIZE:.2f} / {theirs / PEER_SIZE:.2f} us, {packed.stat().st_size / PEER_SIZE:.0f} B per event"
    )
    yield Gate("export: written and packed / packing alone at gzip's default level", ours / theirs, None, detail=detail)


def _median_us(write: Callable[[], object]) -> float:
    return statistics.median(_us(write) for _ in range(REPEATS))


def _alternated_us(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = REPEATS
) -> tuple[float, float]:
    """Return the medians of two that run in alternation, us."""
    pairs = [(_us(ours), _us(theirs)) for _ in range(repeats)]
    return statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs)


def _us(write: Callable[[], object]) -> float:
    began = time.process_time_ns()
    write()
    return (time.process_time_ns() - began) / 1000


def _used_bytes(trace: Trace, path: Path) -> int:
    """Return the peak of what numpy and Python allocate while a trace is written."""
    tracemalloc.start()
    try:
        chrome_trace(trace, path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _run_peer() -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.export", str(PEER_SIZE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _torch_profile(n: int) -> dict[str, float]:
    """Write one profile with `n` kernels both ways, and return what each takes per event."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from benchmarks.records import columns
    from benchmarks.setting import renamed_backend
    from devprof.registry import register
    from devprof.testing import ScriptedProfiler, plugin_of
    from devprof.torch import enable, trace_of

    renamed_backend()
    made = columns(n)
    plugin = ScriptedProfiler("bench-export", script=lambda start_ns, end_ns: [made(start_ns, end_ns)])
    register(plugin_of(plugin), "bench-export")
    enable("bench-export")
    x, y = torch.zeros(1), torch.ones(1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        for _ in range(100):
            x.add_(y)
        time.sleep(0.02)  # room for the kernels to lie side by side
    trace = trace_of(prof)  # from now on, Kineto's writer runs as often as it is asked
    with tempfile.TemporaryDirectory() as folder:
        ours, kineto = _alternated_us(
            lambda: chrome_trace(trace, Path(folder) / "devprof.json"),
            lambda: prof.export_chrome_trace(str(Path(folder) / "kineto.json")),
        )
    return {"devprof_us": ours / len(trace), "kineto_us": kineto / len(trace)}


if __name__ == "__main__":
    print(json.dumps(_torch_profile(int(sys.argv[1]))))
