"""Metadata, counters, names of rows and facts about devices: whatever they hold, the file is valid and torch can read it.

torch 2.13 converts some metadata keys to numbers, reads others as its own, and pastes all text into the file unescaped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import toyland
from torch.autograd import DeviceType
from toyland import Deliver, assert_closes, kernel

from devprof.model import ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo

EXPOSE = {"experimental_config": torch._C._profiler._ExperimentalConfig(expose_kineto_event_metadata=True)}

METADATA: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain types": (
        {"i": 7, "f": 0.5, "b": True, "s": "text", "l": (1, 2, 3), "big": 2**62, "negative": -1},
        {"i": 7, "f": 0.5, "b": True, "s": "text", "l": [1, 2, 3], "big": 2**62, "negative": -1},
    ),
    "hostile text": ({"s": 'a"b\\c\n\té\x00'}, {"s": "a'b/c  %C3%A9"}),
    "hostile keys": ({'k"\\\n\x01é': 1}, {"k'/ %C3%A9": 1}),
    "an empty key": ({"": 1}, {"": 1}),
    "numbers that JSON lacks": ({"nan": math.nan, "inf": math.inf, "fine": 1.5}, {"fine": 1.5}),
    "keys of torch's own": (
        {"Ev Idx": 3, "hidden": 1, "External id": 4, "correlation": 5, "device": 6, "stream": "seven", "mine": 8},
        {"mine": 8},
    ),
    "keys that are torch's once they are clean": (
        {"\x01Ev Idx": 3, "hidden\x02": 1, "stre\x00am": 2, "mine": 8},
        {"mine": 8},
    ),
    "text where torch reads a number": (
        {"bytes": "many", "queued": "soon", "grid": "big", "memory bandwidth (GB/s)": "N/A", "priority": 1.5},
        {
            "bytes (as given)": "many",
            "queued (as given)": "soon",
            "grid (as given)": "big",
            "memory bandwidth (GB/s) (as given)": "N/A",
            "priority (as given)": 1.5,
        },
    ),
    "numbers where torch reads numbers": (
        {"bytes": 4096, "memory bandwidth (GB/s)": 1.5, "grid": (1, 2, 3), "registers per thread": 32},
        {"bytes": 4096, "memory bandwidth (GB/s)": 1.5, "grid": [1, 2, 3], "registers per thread": 32},
    ),
    "an empty list": ({"l": (), "grid": ()}, {"l": [], "grid": []}),
    "a long text": ({"s": "x" * 10_000}, {"s": "x" * 4093 + "..."}),
}


@pytest.mark.parametrize("case", METADATA)
def test_metadata_is_valid_json_of_its_type_and_torch_can_read_it(deliver: Deliver, case: str) -> None:
    given, wanted = METADATA[case]
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns, metadata=given)], options=EXPOSE)
    (work,) = toyland.slices(session.trace, "kernel")
    args = {key: value for key, value in work["args"].items() if key not in ("device", "stream", "correlation")}
    assert {key: float(value) if isinstance(value, toyland.Decimal) else value for key, value in args.items()} == wanted
    assert (work["args"]["device"], work["args"]["stream"]) == (0, 0)
    assert [event.name for event in session.prof.events() if event.device_type == DeviceType.PrivateUse1] == ["k"]
    assert_closes(session, 1)


def test_keys_that_become_one_when_they_are_cleaned_are_kept_apart(deliver: Deliver) -> None:
    items = {'a"': 1, "a'": 2, "a\x01'": 3, "bytes": "x", "bytes (as given)": 4}
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns, metadata=items)])
    (work,) = toyland.slices(session.trace, "kernel")
    values = [value for key, value in work["args"].items() if key not in ("device", "stream", "correlation")]
    assert sorted(values, key=str) == [1, 2, 3, 4, "x"]


def test_one_key_may_hold_different_types_in_different_records(deliver: Deliver) -> None:
    values = [1, "text", 2.5, True, (1, 2), (1, 2, 3)]
    session = deliver(
        lambda start_ns, end_ns: [kernel(at=start_ns + i, metadata={"v": value}) for i, value in enumerate(values)]
    )
    shown = [event["args"]["v"] for event in toyland.slices(session.trace, "kernel")]
    assert sorted(map(json.dumps, values)) == sorted(json.dumps(one, default=float) for one in shown)
    assert_closes(session, len(values))


def counter(at: int, **values: float) -> GenericTraceActivity:
    return GenericTraceActivity(ActivityType.MTIA_COUNTERS, "use", at, at, counter_values=values)


def test_a_counter_sample_is_one_counter_event_with_its_numbers(deliver: Deliver) -> None:
    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        yield counter(start_ns, busy=0.25, bytes=4096.0)
        yield counter(start_ns + 1, busy=math.nan, bytes=1.0)
        yield counter(start_ns + 2, **{'q"\n': math.inf, "x": 3.0})

    session = deliver(script)
    found = [event for event in session.trace["traceEvents"] if event["ph"] == "C"]
    assert [{key: float(value) for key, value in event["args"].items()} for event in found] == [
        {"busy": 0.25, "bytes": 4096.0},
        {"bytes": 1.0},
        {"x": 3.0},
    ]
    assert session.ledger.notes["non-finite number left out"] == 2
    assert_closes(session, 3)


def test_names_of_counters_devices_and_streams_are_cleaned_too(deliver: Deliver) -> None:
    sample = GenericTraceActivity(ActivityType.MTIA_COUNTERS, 'n"\n', 0, 0, counter_values={"v": 1.0})

    def script(start_ns: int, end_ns: int) -> Iterator[GenericTraceActivity]:
        sample.start_ns = sample.end_ns = start_ns
        yield sample
        yield kernel(at=start_ns, resource=3)

    session = deliver(
        script,
        devices=[DeviceInfo(0, 'De"v\\ice\né', label='la"bel')],
        resources=[ResourceInfo(3, 0, 'str"eam\t\x00')],
    )
    named = {
        (event["name"], event["args"].get("name") or event["args"].get("labels"))
        for event in session.trace["traceEvents"]
        if event["ph"] == "M" and event["pid"] == 0
    }
    assert ("process_name", "De'v/ice %C3%A9") in named
    assert ("process_labels", "la'bel") in named
    assert ("thread_name", "str'eam ") in named
    assert [event["name"] for event in session.trace["traceEvents"] if event["ph"] == "C"] == ["n' "]


def test_metadata_of_the_trace_has_its_json_type_and_cannot_break_the_file(deliver: Deliver) -> None:
    given = {
        "text": 'q"\\\né',
        "numbers": [1, 2.5, -3],
        "flags": {"on": True, "off": False, "unset": None},
        "nan": math.nan,
        "big": 2**70,
        'ke"y\n': {"in\\ner": ["\x00"]},
    }
    session = deliver((), metadata=given)
    assert session.trace["text"] == "q'/ %C3%A9"
    assert [float(one) for one in session.trace["numbers"]] == [1, 2.5, -3]
    assert session.trace["flags"] == {"on": True, "off": False, "unset": None}
    assert session.trace["nan"] == "nan"
    assert session.trace["big"] == 2**70
    assert session.trace["ke'y "] == {"in/ner": [""]}


@pytest.mark.parametrize(
    "key",
    [
        "traceEvents",
        "schemaVersion",
        "deviceProperties",
        "displayTimeUnit",
        "baseTimeNanoseconds",
        "traceName",
        "devprof",
        "trace_id",
        "distributedInfo",
        "host_name",
        "with_stack",
    ],
)
def test_a_plugins_metadata_cannot_take_the_place_of_what_the_writer_puts_there(deliver: Deliver, key: str) -> None:
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns)], metadata={key: "mine", "other": 1})
    assert session.trace["other"] == 1
    assert session.trace.get(key) != "mine"
    assert toyland.names(session.trace, "kernel") == ["k"]
    assert_closes(session, 1)


@pytest.mark.parametrize(
    ("what", "infos"),
    [
        ("devices", [DeviceInfo(0, "one"), DeviceInfo(0, "two")]),
        ("devices", [DeviceInfo(10**6, "a device without work")]),
        ("resources", [ResourceInfo(0, 0, "one"), ResourceInfo(0, 0, "two")]),
        ("resources", [ResourceInfo(2**62, 0, "a stream without work")]),
    ],
)
def test_strange_facts_about_rows_cost_no_record(deliver: Deliver, what: str, infos: Any) -> None:
    session = deliver(lambda start_ns, end_ns: [kernel(at=start_ns)], **{what: infos})
    assert toyland.names(session.trace, "kernel") == ["k"]
    assert_closes(session, 1)
