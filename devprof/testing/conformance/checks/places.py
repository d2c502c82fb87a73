"""Texts, metadata, devices, streams and memory."""

from __future__ import annotations

import json
from collections import Counter

from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.table import DIRECT, CheckFailed, Undecided, check, expect
from devprof.torch.keys import RESERVED, fits_torch

__all__: list[str] = []

_CPU = 0
"""torch's number of the device type."""

_HOSTILE = ('say "hi"', "back\\slash", "tab\tand\nline", "größe 寸法", "k" * 10_000, "void f<int, 3>(float*)", "\x01")


@check(
    "C701",
    hosts=DIRECT,
    needs=("workload", "kernels", "exact names"),
    cause="The name is cut, cleaned or decoded with the wrong encoding. Hand it over as it is, with "
    "errors='surrogateescape' or 'replace' where it is not UTF-8: devprof cleans it where a format needs that.",
)
def names_come_as_they_are(bench: Bench) -> None:
    """A kernel's name is handed over whole, whatever is in it.

    Launches kernels whose names hold quotes, backslashes, control characters, other scripts and ten thousand letters.
    """
    session = bench.direct()
    session.start()
    for name in _HOSTILE:
        session.launch(1, name=name)
    kernels = session.finish().kernels
    if len(kernels) != len(_HOSTILE):
        raise Undecided("C401", f"{len(kernels)} kernels were delivered where {len(_HOSTILE)} were launched")
    for one, name in zip(kernels, _HOSTILE, strict=True):
        expect(one.activity_name == name, expected=repr(name[:60]), found=repr(one.activity_name[:60]))


@check(
    "C702",
    needs=("workload", "kernels"),
    cause="The vendor's record points to a name that is not there. Give work without a name one that says what it is.",
)
def everything_has_a_name(bench: Bench) -> None:
    """Every record has a name.

    Launches kernels and looks for empty names.
    """
    records = bench.work(3).delivered(3).records()
    found = Counter(one.activity_type.name for one in records if not one.activity_name.strip())
    expect(not found, expected="no record without a name", found=dict(found))


@check(
    "C703",
    needs=("workload", "kernels"),
    cause="torch reads some keys itself and expects numbers under 'bytes', lists under 'grid'; 'device', 'stream', "
    "'correlation' and 'External id' are written by devprof and torch. Other keys take any value.",
)
def metadata_has_the_types_that_torch_reads(bench: Bench) -> None:
    """Items under keys that torch knows have the type that it expects, and none has a key of the host's.

    Launches kernels, copies and sets, and looks at the items of every record.
    """

    def body(capture: Capture) -> None:
        bench.launch(2)
        for method in ("copy", "set"):
            if bench.device.has(method):
                bench.in_op(method, lambda method=method: bench.device.call(method, 64))  # type: ignore[misc]
        bench.device.synchronize()

    batches = bench.session(body).seen.batches
    items = {(key, column.kind) for batch in batches for key, column in batch.metadata.items()}
    wrong = sorted(f"{key} as {kind.name}" for key, kind in items if not fits_torch(key, kind))
    taken = sorted({key for key, _ in items if key in RESERVED})
    expect(not wrong, expected="values that torch can read", found=wrong)
    expect(not taken, expected="no key of the host's", found=taken)


@check(
    "C704",
    needs=("workload",),
    cause="NaN, infinity, bytes or an object stands in `get_metadata()` or `get_device_properties()`. They become JSON "
    "in the trace.",
)
def facts_are_json(bench: Bench) -> None:
    """What the plugin says of the session and its devices is strict JSON.

    Writes the answers of `get_metadata()` and `get_device_properties()` as strict JSON.
    """
    said = bench.session(lambda capture: None).seen.said
    for hook in ("get_metadata", "get_device_properties"):
        try:
            json.dumps(said.get(hook), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise CheckFailed(f"values for JSON from {hook}()", f"{said.get(hook)!r}: {error}") from None


@check(
    "C721",
    needs=("workload", "kernels"),
    cause="`get_device_infos()` and `get_resource_infos()` are missing, or name other numbers than the records carry. "
    "Rows then have plain names.",
)
def rows_have_names(bench: Bench) -> None:
    """Every device and stream that a record refers to is named, once.

    Launches kernels, and compares the places of the records with those that the plugin named.
    """
    seen = bench.work(3).delivered(3)
    devices = [one.id for one in [*seen.devices, *(seen.said.get("get_device_infos") or ())]]
    resources = [(one.device_id, one.id) for one in [*seen.resources, *(seen.said.get("get_resource_infos") or ())]]
    used = {(one.device, one.resource) for one in seen.work}
    nameless = sorted({device for device, _ in used} - set(devices)), sorted(used - set(resources))
    twice = [place for place, n in [*Counter(devices).items(), *Counter(resources).items()] if n > 1]
    expect(
        not any(nameless), expected="named devices and streams", found=f"no name for {nameless[0]} and {nameless[1]}"
    )
    expect(not twice, expected="one name each", found=f"several for {twice}")


@check(
    "C722",
    needs=("workload", "kernels", "two devices"),
    cause="Records of all devices carry one number, or the physical number in place of the one that the program uses.",
)
def each_device_has_its_number(bench: Bench) -> None:
    """Work carries the number of the device that does it.

    Launches one kernel on the first device and two on the second.
    """

    def body(capture: Capture) -> None:
        bench.launch(1)
        bench.launch(2, device=1)
        bench.device.synchronize()

    found = Counter(one.device for one in bench.session(body).delivered(3).kernels)
    expect(found == {0: 1, 1: 2}, expected="1 kernel on device 0, 2 on device 1", found=dict(found))


@check(
    "C723",
    needs=("workload", "kernels", "two streams"),
    cause="`resource` is not filled. Work of several streams then stands on one row and seems to overlap.",
)
def each_stream_has_its_number(bench: Bench) -> None:
    """Work of two streams carries two numbers.

    Launches one kernel on the first stream and two on the second.
    """

    def body(capture: Capture) -> None:
        bench.launch(1)
        bench.launch(2, stream=1)
        bench.device.synchronize()

    found = Counter(one.resource for one in bench.session(body).delivered(3).kernels)
    expect(sorted(found.values()) == [1, 2], expected="1 kernel on one stream, 2 on another", found=dict(found))


@check(
    "C741",
    needs=("workload", "memory"),
    cause="`config.memory` is not used, a release is reported with a positive size, or the total is not what is "
    "allocated now.",
)
def memory_reports_balance(bench: Bench) -> None:
    """An allocation is reported with its size, and its release with the same size, negative.

    Allocates and frees a megabyte in a session with `profile_memory=True`, and reads the reports from the trace. Under torch
    they may also come from the backend's own allocator.
    """

    def body(capture: Capture) -> None:
        bench.in_op("memory", lambda: bench.device.call("free", bench.device.call("allocate", 1 << 20)))

    trace = bench.session(body, profile_memory=True).trace
    reports = [trace.items_of(event) for event in trace.named("[memory]").tolist()]
    of_device = [one for one in reports if one.get("Device Type") != _CPU]
    deltas = [one.get("Bytes") for one in of_device]
    sizes = [delta for delta in deltas if isinstance(delta, int)]
    expect(
        bool(sizes) and sizes[0] >= 1 << 20 and sum(sizes) == 0,
        expected="a report of at least 1 MiB, and one that takes it back",
        found=deltas,
    )
    totals = [one.get("Total Allocated") for one in of_device]
    negative = [total for total in totals if isinstance(total, int) and total < 0]
    expect(not negative, expected="totals from 0 up", found=negative)


@check(
    "C742",
    needs=("workload", "memory"),
    cause="The reporter is still installed in the allocator when the session has stopped. Take it out in `stop`.",
)
def memory_reports_end_with_the_session(bench: Bench) -> None:
    """Nothing is reported after `stop`.

    Allocates memory when a session with `profile_memory=True` has ended.
    """
    capture = bench.session(lambda _: None, profile_memory=True)
    bench.device.call("free", bench.device.call("allocate", 1 << 20))
    late = sum(one.after_stop for one in capture.seen.memory)
    expect(late == 0, expected="no report", found=f"{late} reports")
