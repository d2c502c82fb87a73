"""Writing Perfetto's protobuf from columns, beside the `perfetto` package, and beside Kineto's JSON writer on the same profile.

The package writes the same packets: names interned, each packet serialised and written as it comes. Costs are processor time,
so that the disk is not measured.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.averages import nested_trace
from benchmarks.export import kernels
from benchmarks.setting import Gate, cpu_us, peak_bytes
from devprof.export import perfetto_trace
from devprof.store import Trace

__all__ = ["gates"]

SIZES = (10_000, 100_000, 1_000_000)
STEPS = 100  # of training: some 100k events
PACKAGE_SIZE = 20_000
REPEATS = 5
HERE = Path(__file__).parent
NAMES = ("External id", "device", "stream", "correlation", "registers per thread", "shared memory", "grid", "block")


def gates() -> Iterator[Gate]:
    """Measure, and yield the figures as they come."""
    own: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.pftrace"
        for n in SIZES:
            trace = kernels(n)
            own[n] = _median_us(lambda trace=trace: perfetto_trace(trace, path)) / n  # type: ignore[misc]  # bound now
            detail = f"{path.stat().st_size / n:.0f} B per event"
            yield Gate(f"perfetto: {n} kernels with 8 args, per event", own[n], None, "us", detail)
        small, large = own[min(SIZES)], own[max(SIZES)]
        yield Gate("perfetto: cost per event, 1M / 10k", large / small, 1.2, detail=f"{large:.2f} / {small:.2f} us")
        yield Gate(
            "perfetto: memory beside the trace, 1M events",
            peak_bytes(lambda: perfetto_trace(trace, path)) / 2**20,
            20,
            "MiB",
        )
        yield _shown("with device and stream only", _bare(trace), path)
        yield _shown("500k nested ranges and 500k kernels, with their ids", nested_trace(500_000), path)
        if importlib.util.find_spec("perfetto"):
            yield _beside_package(kernels(PACKAGE_SIZE), path)
    yield from _beside_kineto()


def _bare(trace: Trace) -> Trace:
    return replace(trace, items={}, id=np.zeros_like(trace.id), linked=np.zeros_like(trace.linked))


def _shown(what: str, trace: Trace, path: Path) -> Gate:
    cost_us = _median_us(lambda: perfetto_trace(trace, path)) / len(trace)
    return Gate(
        f"perfetto: {what}, per event", cost_us, None, "us", f"{path.stat().st_size / len(trace):.0f} B per event"
    )


def _beside_package(trace: Trace, path: Path) -> Gate:
    pairs = [(cpu_us(lambda: perfetto_trace(trace, path)), cpu_us(lambda: _by_package(trace, path))) for _ in range(3)]
    ours, theirs = (statistics.median(side) / len(trace) for side in zip(*pairs, strict=True))
    detail = f"{ours:.2f} / {theirs:.2f} us"
    return Gate("perfetto: per event / the perfetto package, streaming", ours / theirs, 1 / 2.5, detail=detail)


def _beside_kineto() -> Iterator[Gate]:
    command = [sys.executable, "-m", "benchmarks.perfetto", str(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
    peer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    detail = f"{peer['own_us']:.2f} / {peer['kineto_us']:.2f} us"
    yield Gate(
        "perfetto: of one profile of training / Kineto's JSON", peer["own_us"] / peer["kineto_us"], 1 / 5, detail=detail
    )
    detail = f"{peer['own_bytes']:.0f} / {peer['kineto_bytes']:.0f} B per event"
    size = peer["own_bytes"] / peer["kineto_bytes"]
    yield Gate("perfetto: its size / that of Kineto's JSON", size, 1 / 4, detail=detail)


def _median_us(write: Callable[[], object]) -> float:
    return statistics.median(cpu_us(write) for _ in range(REPEATS))


def _by_package(trace: Trace, path: Path) -> None:
    """Write the kernels of a trace as the `perfetto` package's users would."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as definitions

    columns = [
        column.tolist() for column in (trace.name, trace.start_ns, trace.end_ns, trace.row, trace.linked, trace.id)
    ]
    items = [trace.items[key].values.tolist() for key in NAMES[4:]]
    whole = definitions.Trace()
    with path.open("wb") as file:

        def write() -> None:
            file.write(whole.SerializeToString())
            whole.Clear()

        packet = whole.packet.add(trusted_packet_sequence_id=1, sequence_flags=1)
        for iid, name in enumerate(NAMES, 1):
            packet.interned_data.debug_annotation_names.add(iid=iid, name=name)
        for iid, name in enumerate(trace.strings, 1):
            packet.interned_data.event_names.add(iid=iid, name=name)
        write()
        for name, start_ns, end_ns, row, linked, launch, *values in zip(*columns, *items, strict=True):
            event = _packet(whole, start_ns, row, 1)
            event.name_iid = name + 1
            for iid, value in enumerate((linked, 0, row, launch, *values), 1):
                _annotate(event, iid, value)
            write()
            _packet(whole, end_ns, row, 2)
            write()


def _packet(whole: Any, time_ns: int, row: int, kind: int) -> Any:
    packet = whole.packet.add(timestamp=time_ns, trusted_packet_sequence_id=1, sequence_flags=2)
    packet.track_event.type = kind
    packet.track_event.track_uuid = row + 1
    return packet.track_event


def _annotate(event: Any, iid: int, value: Any) -> None:
    annotation = event.debug_annotations.add(name_iid=iid)
    if isinstance(value, list):
        for one in value:
            annotation.array_values.add(int_value=one)
    else:
        annotation.int_value = value


def _both_ways(steps: int) -> dict[str, float]:
    """Write one profile of training both ways, and return what each takes per event."""
    from benchmarks.profiled import profile_of_training
    from devprof.torch import trace_of

    profiled = profile_of_training(steps, "bench-perfetto")
    trace = trace_of(profiled)  # from now on, Kineto's writer runs as often as it is asked
    with tempfile.TemporaryDirectory() as folder:
        own, kineto = Path(folder) / "devprof.pftrace", Path(folder) / "kineto.json"
        pairs = [
            (cpu_us(lambda: perfetto_trace(trace, own)), cpu_us(lambda: profiled.export_chrome_trace(str(kineto))))
            for _ in range(REPEATS)
        ]
        own_us, kineto_us = (statistics.median(side) for side in zip(*pairs, strict=True))
        sizes = {"own_bytes": own.stat().st_size, "kineto_bytes": kineto.stat().st_size}
    return {key: value / len(trace) for key, value in {"own_us": own_us, "kineto_us": kineto_us, **sizes}.items()}


if __name__ == "__main__":
    print(json.dumps(_both_ways(int(sys.argv[1]))))
