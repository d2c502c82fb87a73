"""Whatever a trace holds, the file says what the trace says, by Perfetto's own definitions."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from devprof.export import perfetto_trace
from devprof.export.shapes import IS_SLICE
from devprof.pipeline.files import load
from devprof.store import Trace
from tests.unit.export.expected import args_of, category, clean, is_sample, samples, written_keys
from tests.unit.export.perfetto_files import File, read
from tests.unit.export.public_traces import each_public_trace
from tests.unit.export.test_hostile_traces import traces


def expected(trace: Trace) -> Counter[Any]:
    """Name, category, start, end and args of each event that is no sample."""
    keys = written_keys(trace)
    found: Counter[Any] = Counter()
    for event in range(len(trace)):
        if is_sample(trace, event):
            continue
        kind, start_ns = int(trace.activity_type[event]), int(trace.start_ns[event])
        end_ns = max(start_ns, int(trace.end_ns[event])) if IS_SLICE[kind] else None
        args = {keys[key]: value for key, value in args_of(trace, event).items()}
        found[clean(trace.name_of(event)), category(kind), start_ns, end_ns, _text(args)] += 1
    return found


def shown(file: File) -> Counter[Any]:
    """The same of a file."""
    return Counter((e.name, e.category, e.start_ns, e.end_ns, _text(e.args)) for e in file.events)


def check(trace: Trace, path: Path) -> None:
    perfetto_trace(trace, path)
    file = read(path)
    assert shown(file) == expected(trace)
    values = Counter((file.path(e.track)[-1], e.start_ns, repr(e.value)) for e in file.samples)
    assert values == Counter((name, start_ns, repr(value)) for name, start_ns, value in samples(trace))
    _check_arrows(file)
    assert all(track.parent_uuid in file.tracks for track in file.tracks.values() if track.parent_uuid)


def _check_arrows(file: File) -> None:
    starts = Counter(number for event in file.events for number in event.flows)
    ends = Counter(number for event in file.events for number in event.last_of_flows)
    assert starts == ends
    assert set(starts.values()) <= {1}


def _text(args: dict[str, Any]) -> str:
    return repr(sorted(args.items()))  # tells 1 from 1.0 and True, and NaN from nothing


@pytest.mark.usefixtures("perfetto_writer")
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(traces())
def test_the_file_holds_every_event_with_its_time_its_args_and_its_values(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(trace, Path(folder) / "t.pftrace")


@pytest.mark.usefixtures("perfetto_writer")
@each_public_trace
def test_a_public_trace_is_in_the_file_as_a_whole(public_trace: Path, tmp_path: Path) -> None:
    check(load(public_trace), tmp_path / "t.pftrace")
