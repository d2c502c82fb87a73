"""Writing Perfetto's protobuf from columns, beside the `perfetto` package, and beside Kineto's JSON writer of one profile.

The package writes the packets of devprof's writer in Python: names interned, each packet serialised and written as it comes.
Kineto's peers are two torch profiles, each in a process of its own: training with shapes, launches, kernels and their arrows;
and kernels with eight args and nothing else. Costs are processor time, so that the disk is not measured.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.averages import nested_trace
from benchmarks.export import kernels
from benchmarks.setting import Gate, cpu_us, peak_bytes
from benchmarks.writers import REPEATS, median_us, taking, writers
from devprof.export import perfetto_trace
from devprof.store import Trace

__all__ = ["gates"]

SIZES = (10_000, 100_000, 1_000_000)
PEER_SIZES = (100_000, 1_000_000)
EVENTS_OF_A_STEP = 1092  # of training
SWITCH = "DEVPROF_PERFETTO_WRITER"
TO_KINETO = {"native": 1 / 5, "python": None}
SIZE_TO_KINETO = {"native": 1 / 4, "python": None}
TO_PACKAGE = {"native": 1 / 20, "python": 1 / 2.5}
MEMORY_MIB = 20
PACKAGE_SIZE = 20_000
HERE = Path(__file__).parent
NAMES = ("External id", "device", "stream", "correlation", "registers per thread", "shared memory", "grid", "block")


def gates() -> Iterator[Gate]:
    """Measure, and yield the figures as they come."""
    ways = writers()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.pftrace"
        for writer in ways:
            with taking(SWITCH, writer):
                yield from _by_size(writer, path)
                if importlib.util.find_spec("perfetto"):
                    yield _beside_package(writer, kernels(PACKAGE_SIZE), path)
    for n in PEER_SIZES:
        for kind in ("training", "kernels"):
            yield from _beside_kineto(kind, n, ways)


def _by_size(writer: str, path: Path) -> Iterator[Gate]:
    own: dict[int, float] = {}
    for n in SIZES:
        trace = kernels(n)
        own[n] = median_us(lambda trace=trace: perfetto_trace(trace, path)) / n  # type: ignore[misc]  # bound now
        detail = f"{path.stat().st_size / n:.0f} B per event"
        yield Gate(f"perfetto ({writer}): {n} kernels with 8 args, per event", own[n], None, "us", detail)
    small, large = own[min(SIZES)], own[max(SIZES)]
    detail = f"{large:.2f} / {small:.2f} us"
    yield Gate(f"perfetto ({writer}): cost per event, 1M / 10k", large / small, 1.2, detail=detail)
    used = peak_bytes(lambda: perfetto_trace(trace, path)) / 2**20
    yield Gate(f"perfetto ({writer}): memory beside the trace, 1M events", used, MEMORY_MIB, "MiB")
    yield _shown(f"perfetto ({writer}): without args", _bare(trace), path)
    name = f"perfetto ({writer}): 500k nested ranges and 500k kernels, with their ids"
    yield _shown(name, nested_trace(500_000), path)


def _bare(trace: Trace) -> Trace:
    return replace(trace, items={}, id=np.zeros_like(trace.id), linked=np.zeros_like(trace.linked))


def _shown(what: str, trace: Trace, path: Path) -> Gate:
    cost_us = median_us(lambda: perfetto_trace(trace, path)) / len(trace)
    return Gate(f"{what}, per event", cost_us, None, "us", f"{path.stat().st_size / len(trace):.0f} B per event")


def _beside_package(writer: str, trace: Trace, path: Path) -> Gate:
    pairs = [(cpu_us(lambda: perfetto_trace(trace, path)), cpu_us(lambda: _by_package(trace, path))) for _ in range(3)]
    ours, theirs = (statistics.median(side) / len(trace) for side in zip(*pairs, strict=True))
    name = f"perfetto ({writer}): per event / the perfetto package, streaming"
    return Gate(name, ours / theirs, TO_PACKAGE[writer], detail=f"{ours:.2f} / {theirs:.2f} us")


def _beside_kineto(kind: str, n: int, ways: list[str]) -> Iterator[Gate]:
    command = [sys.executable, "-m", "benchmarks.perfetto", kind, str(n), *ways]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
    peer: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    kineto = peer["kineto"]
    for writer in ways:
        own = peer[writer]
        what = f"perfetto ({writer}): of one profile of {kind}, {n // 1000}k events"
        detail = f"{own['us']:.2f} / {kineto['us']:.2f} us"
        yield Gate(f"{what} / Kineto's JSON", own["us"] / kineto["us"], TO_KINETO[writer], detail=detail)
        detail = f"{own['bytes']:.0f} / {kineto['bytes']:.0f} B per event"
        size = own["bytes"] / kineto["bytes"]
        yield Gate(f"{what}, its size / that of Kineto's JSON", size, SIZE_TO_KINETO[writer], detail=detail)


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


def _both_ways(kind: str, n: int, ways: list[str]) -> dict[str, dict[str, float]]:
    """Write one torch profile of `n` events in each way, and return what each takes per event."""
    from benchmarks.profiled import profile_of_kernels, profile_of_training
    from devprof.torch import trace_of

    name = "bench-perfetto"
    profiled = profile_of_training(n // EVENTS_OF_A_STEP, name) if kind == "training" else profile_of_kernels(n, name)
    trace = trace_of(profiled)  # from now on, Kineto's writer runs as often as it is asked
    with tempfile.TemporaryDirectory() as folder:
        paths = {way: Path(folder) / way for way in ("kineto", *ways)}
        taken: dict[str, list[float]] = {way: [] for way in paths}
        for _ in range(REPEATS):
            taken["kineto"].append(cpu_us(lambda: profiled.export_chrome_trace(str(paths["kineto"]))))
            for writer in ways:
                with taking(SWITCH, writer):
                    taken[writer].append(cpu_us(lambda path=paths[writer]: perfetto_trace(trace, path)))  # type: ignore[misc]
        return {
            way: {"us": statistics.median(taken[way]) / len(trace), "bytes": paths[way].stat().st_size / len(trace)}
            for way in paths
        }


if __name__ == "__main__":
    print(json.dumps(_both_ways(sys.argv[1], int(sys.argv[2]), sys.argv[3:])))
