"""Whatever a plugin delivers: the file parses strictly, torch reads it, and the account closes (property test)."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import toyland
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.profiler import record_function
from toyland import Join

import devprof
from devprof.errors import DevprofWarning
from devprof.model import ActivityType, DeviceInfo, Flow, GenericTraceActivity, ResourceInfo
from devprof.testing import ScriptedProfiler

ANY_TEXT = st.text(st.characters(codec=None), max_size=40) | st.sampled_from(
    ["", "kernel", "Pi", '"', "\\", "\x00", "Ev Idx"]
)
NEAR = st.integers(-1000, 10**6)
ID = st.integers(0, 700) | st.integers(-(2**63), 2**64)
VALUE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    ANY_TEXT,
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
    st.lists(ANY_TEXT, max_size=2),
    st.dictionaries(ANY_TEXT, st.integers(), max_size=2),
)
KEYS = ANY_TEXT | st.sampled_from(
    ["stream", "device", "correlation", "bytes", "queued", "grid", "hidden", "External id", "occupancy"]
)
# a plugin's own ranges could not be told from those that devprof derives
KIND = (st.sampled_from([5, 3, 4, 24, 25, 11, 17]) | st.integers(-1, 300)).filter(lambda kind: kind != 2)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """One record as plain values; times are relative to the window."""
    return {
        "activity_type": draw(KIND),
        "activity_name": draw(ANY_TEXT | st.none() | st.binary(max_size=3)),
        "start_ns": draw(NEAR),
        "end_ns": draw(NEAR | st.just(2**70)),
        "id": draw(ID),
        "device": draw(st.integers(0, 3) | st.integers(-(2**31), 2**32)),
        "resource": draw(st.integers(0, 3) | st.integers(-(2**64), 2**64)),
        "thread_id": draw(st.integers(-(2**64), 2**64)),
        "linked": draw(ID),
        "linked_user": draw(ID),
        "flow": draw(st.none() | st.builds(Flow, st.integers(0, 5), st.integers(0, 3), st.booleans())),
        "metadata": draw(st.dictionaries(KEYS, VALUE, max_size=4)),
        "counter_values": draw(st.dictionaries(KEYS, st.floats() | st.integers(), max_size=3)),
    }


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    batches=st.lists(records(), max_size=12),
    metadata=st.dictionaries(
        ANY_TEXT, st.recursive(st.none() | ANY_TEXT | st.integers() | st.floats(), st.lists), max_size=3
    ),
    names=st.lists(ANY_TEXT, max_size=3),
)
def test_any_delivery_gives_a_valid_file_and_a_closed_account(
    join: Join, batches: list[dict[str, Any]], metadata: dict[str, Any], names: list[str]
) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        for fields in batches:
            yield GenericTraceActivity(
                **{**fields, "start_ns": start_ns + fields["start_ns"], "end_ns": start_ns + fields["end_ns"]}
            )

    plugin = plugin_of_this_test(join)
    plugin.script, plugin.metadata = script, metadata
    plugin.devices = [DeviceInfo(i, name, label=name) for i, name in enumerate(names)]
    plugin.resources = [ResourceInfo(i, 0, name) for i, name in enumerate(names)]
    config = torch._C._profiler._ExperimentalConfig(expose_kineto_event_metadata=True)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", DevprofWarning)
        with toyland.profile(experimental_config=config) as prof, record_function("range"):
            torch.ones(3).neg()
        trace = toyland.exported(prof, Path(folder))
    prof.events()
    prof.key_averages().table()
    report = devprof.report_of(prof)
    ledger = report.ledgers[plugin.label]
    assert ledger.failures == []
    assert report.notes == []
    assert ledger.produced == len(batches)
    assert ledger.emitted + ledger.dropped.total() + ledger.rejected.total() == len(batches)
    ours = [event for event in trace["traceEvents"] if event.get("ph") in "XCi" and event.get("cat") in OUR_CATEGORIES]
    counters = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    assert len(ours) + len(counters) == ledger.emitted
    starts = [event["id"] for event in toyland.slices(trace, "ac2g") if event["ph"] == "s"]
    ends = [event["id"] for event in toyland.slices(trace, "ac2g") if event["ph"] == "f"]
    assert len(set(starts)) == len(starts)
    assert set(ends) == set(starts)


OUR_CATEGORIES = {
    kind.label
    for kind in ActivityType
    if kind.name
    in {"CONCURRENT_KERNEL", "GPU_MEMCPY", "GPU_MEMSET", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER", "OVERHEAD"}
}

_PLUGINS: dict[Any, ScriptedProfiler] = {}


def plugin_of_this_test(join: Join) -> ScriptedProfiler:
    """One plugin for all examples: the fixture lives as long as the test does."""
    if join not in _PLUGINS:
        _PLUGINS.clear()
        _PLUGINS[join] = join()
    return _PLUGINS[join]
