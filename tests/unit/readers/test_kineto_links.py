"""Chrome JSON: whose each record is: ids, links, arrows, and the places they stand on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from devprof.pipeline.files import joined
from devprof.store import PlaceKind
from tests.unit.readers.kineto_json import Read, file_of, left_out, names_of, slice_of

# ids and links


@pytest.mark.parametrize("key", ["External id", "external id", "External Id", "external_id", "External_Id"])
@pytest.mark.parametrize("launch", ["correlation", "Correlation", "correlation_id", "correlationId"])
def test_ids_are_found_in_any_spelling(read: Read, key: str, launch: str) -> None:
    where = {"pid": 1, "tid": 2, "ts": 2, "dur": 1}
    trace = joined(
        read(
            [
                slice_of("op", 1, 9, args={key: 23}),
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **where, "args": {key: 23, launch: 41}},
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": "k",
                    "pid": 0,
                    "tid": 7,
                    "ts": 5,
                    "dur": 1,
                    "args": {key: 23, launch: 41},
                },
            ]
        )
    )
    assert (trace.id.tolist(), trace.linked.tolist()) == ([23, 41, 41], [0, 23, 23])
    assert (trace.parent.tolist(), dict(trace.items)) == ([-1, 0, 1], {})


def test_a_kernel_belongs_to_the_op_of_its_id_and_not_to_one_with_its_launch_number(read: Read) -> None:
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 21, "dur": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 30, "dur": 5}
    ids = {"External id": 41, "correlation": 23}
    trace = joined(
        read(
            [
                slice_of("A", 1, 9, args={"External id": 23}),
                slice_of("B", 20, 9, args={"External id": 41}),
                {**call, "args": ids},
                {**kernel, "args": ids},
            ]
        )
    )
    parents = {trace.name_of(at): trace.name_of(int(up)) if up >= 0 else None for at, up in enumerate(trace.parent)}
    assert parents == {"A": None, "B": None, "cudaLaunchKernel": "B", "k": "cudaLaunchKernel"}
    assert trace.linked[trace.named("k")].tolist() == [41]


def test_launch_numbers_in_place_of_op_ids_as_older_kineto_wrote_them_lead_to_no_op(read: Read) -> None:
    def launched(number: int, ts: int) -> list[dict[str, Any]]:
        ids = {"External id": number, "correlation": number}
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": ts, "dur": 1}
        kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": ts + 5, "dur": 1}
        return [{**call, "args": ids}, {**kernel, "args": ids}]

    ops = [slice_of("A", 1, 9, args={"External id": 41}), slice_of("B", 20, 9, args={"External id": 2})]
    trace = joined(read([*ops, *launched(2, 3), *launched(41, 23), *launched(50, 40)]))
    owners = {41: "A", 2: "B", 0: None}
    found = {int(trace.id[at]): owners[int(trace.linked[at])] for at in trace.named("k")}
    assert found == {2: "A", 41: "B", 50: None}
    (note,) = trace.facts["file"]["notes"]  # type: ignore[index]
    assert note.startswith("calls and device work have their launch number for an op id")


def test_an_op_id_that_happens_to_be_the_launch_number_is_one_where_the_op_around_the_call_has_it(read: Read) -> None:
    ids = {"External id": 41, "correlation": 41}
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 3, "dur": 1}
    trace = joined(read([slice_of("A", 1, 9, args={"External id": 41}), {**call, "args": ids}]))
    assert trace.linked.tolist() == [0, 41]
    assert trace.facts["file"]["notes"] == []  # type: ignore[index]


ACCOUNT = {"host": "torch", "start_ns": 1, "end_ns": 90, "notes": [], "plugins": {"npu": {"produced": 4}}}


@pytest.mark.parametrize("has_account", [False, True])
@pytest.mark.parametrize("number", [0, 2], ids=["without an op id", "with the launch number for one"])
def test_a_file_with_the_account_of_a_session_has_the_links_of_the_session_and_no_guessed_ones(
    read: Read, number: int, has_account: bool
) -> None:
    ids = {"External id": number, "correlation": 2}
    call = {
        "ph": "X",
        "cat": "privateuse1_runtime",
        "name": "launch",
        "pid": 1,
        "tid": 2,
        "ts": 3,
        "dur": 1,
        "args": ids,
    }
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 30, "dur": 1, "args": ids}
    account = {"devprof": {"version": "0.1", **ACCOUNT}} if has_account else {}
    trace = joined(read(file_of(slice_of("A", 1, 9, args={"External id": 41}), call, kernel, **account)))
    assert set(trace.linked[np.r_[trace.named("launch"), trace.named("k")]]) == {number if has_account else 41}
    assert trace.parent[trace.named("k")] == trace.named("launch")
    assert trace.facts.get("report") == (ACCOUNT if has_account else None)


def test_a_merged_file_has_guessed_links_where_a_rank_has_no_account(read: Read) -> None:
    call = {"ph": "X", "cat": "privateuse1_runtime", "name": "launch", "pid": 1, "tid": 2, "ts": 3, "dur": 1}
    for facts, expected in (({"report": ACCOUNT}, 0), ({}, 41)):
        ranks = [{"rank": 0, "facts": {"report": ACCOUNT}}, {"rank": 1, "facts": facts}]
        trace = joined(read(file_of(slice_of("A", 1, 9, args={"External id": 41}), call, devprof={"ranks": ranks})))
        assert trace.linked[trace.named("launch")] == expected


def test_device_work_without_launch_hangs_under_its_op(read: Read) -> None:
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": 30,
        "dur": 5,
        "args": {"External id": 4},
    }
    trace = joined(read([slice_of("op", 1, 9, args={"External id": 4}), kernel]))
    assert trace.parent.tolist() == [-1, 0]


def test_ids_that_are_no_whole_numbers_of_64_bits_stay_items(read: Read) -> None:
    given = ["x", 2**70, 1.5, None, [1], 0]
    trace = read([slice_of(f"op {at}", at, 1, args={"External id": value}) for at, value in enumerate(given)])
    assert trace.id.tolist() == [0] * 6
    assert [trace.item("External id", at) for at in range(6)] == ['"x"', str(2**70), "1.5", None, "[1]", "0"]


# arrows


def _flow(
    phase: str, number: object, ts: object, category: str = "ac2g", pid: int = 1, tid: int = 2
) -> dict[str, object]:
    return {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": category, "name": category, "bp": "e"}


def test_an_end_of_an_arrow_belongs_to_the_slice_that_starts_there(read: Read) -> None:
    call = {"ph": "X", "cat": "cuda_runtime", "name": "call", "pid": 1, "tid": 2, "ts": 2, "dur": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1}
    events = [slice_of("op", 1, 9), call, _flow("s", 77, 2), kernel, _flow("f", 77, 5, pid=0, tid=7)]
    for order in (events, [events[2], events[4], events[0], events[1], events[3]]):
        trace = read(order)
        rows = zip(
            names_of(trace), trace.flow_id.tolist(), trace.flow_type.tolist(), trace.flow_start.tolist(), strict=True
        )
        assert sorted(rows) == [("call", 77, 2, 1), ("k", 77, 2, 0), ("op", 0, 0, 0)]
        assert left_out(trace) == {}


def test_ends_of_arrows_that_stand_on_nothing_are_counted(read: Read) -> None:
    trace = read(
        [slice_of("op", 1, 9), _flow("s", 1, 1, "fwdbwd"), _flow("s", 2, 3), _flow("s", 3, 1), _flow("t", 4, 1, "mine")]
    )
    assert (trace.flow_id.tolist(), trace.flow_type.tolist()) == ([1], [1])
    assert left_out(trace) == {
        "end of an arrow without a slice of its own": 2,
        "end of an arrow of a kind that is not Kineto's": 1,
    }


def test_arrows_whose_ids_are_texts_keep_apart(read: Read) -> None:
    events = [
        slice_of("a", 1, 1),
        _flow("s", "0x10", 1),
        slice_of("b", 2, 1),
        _flow("s", "me", 2),
        slice_of("c", 3, 1),
        _flow("s", "you", 3),
    ]
    trace = read(events)
    assert trace.flow_id[0] == 16
    assert len(set(trace.flow_id.tolist())) == 3


# places


def test_places_and_rows_are_named_and_sorted_as_the_file_says(read: Read) -> None:
    def said(what: str, pid: object, tid: object, **args: object) -> dict[str, object]:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}

    trace = read(
        file_of(
            said("process_name", 1, 0, name="python"),
            said("process_labels", 1, 0, labels="CPU"),
            said("process_sort_index", 1, 0, sort_index=1),
            said("process_name", 0, 0, name="python"),
            said("process_labels", 0, 0, labels="GPU 0"),
            said("process_sort_index", 0, 0, sort_index=5000000),
            said("thread_name", 1, 2, name="main"),
            said("thread_sort_index", 1, 2, sort_index=2),
            said("thread_name", 0, 7, name="stream 7"),
            said("process_labels", 3, 0, labels="GPU 3"),
            said("num_cpus", 1, 0, number=8),
            slice_of("op", 1, 1),
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
            deviceProperties=[{"id": 0, "name": "A100"}, "odd", {"id": []}],
        )
    )
    assert [(p.id, p.kind, p.name, p.label, p.sort_index, p.backend, dict(p.properties)) for p in trace.places] == [
        (1, PlaceKind.HOST, "python", "CPU", 1, "cpu", {}),
        (0, PlaceKind.DEVICE, "python", "GPU 0", 5000000, "cuda", {"id": 0, "name": "A100"}),
        (3, PlaceKind.DEVICE, "", "GPU 3", None, "cuda", {}),
    ]
    assert [(row.place, row.id, row.name, row.sort_index) for row in trace.rows] == [
        (0, 2, "main", 2),
        (1, 7, "stream 7", None),
    ]
    assert trace.facts["metadata_events"] == [{"name": "num_cpus", "pid": 1, "tid": 0, "args": {"number": 8}}]


def test_a_host_and_a_device_with_one_number_are_two_places(read: Read) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    trace = read([{**slice_of("op", 1, 1), "pid": 0, "tid": 0}, kernel])
    assert [(place.id, place.kind) for place in trace.places] == [(0, PlaceKind.HOST), (0, PlaceKind.DEVICE)]
    assert trace.on_device.tolist() == [False, True]


def test_numbers_may_be_texts_and_texts_get_numbers(read: Read) -> None:
    trace = read(
        [{**slice_of("a", 1, 1), "pid": "12", "tid": "34"}, {**slice_of("b", 2, 1), "pid": "trainer", "tid": "loader"}]
    )
    assert (trace.places[0].id, trace.places[0].name) == (12, "")
    assert trace.places[1].name == "trainer"
    assert trace.rows[0].id == 34
    assert trace.rows[1].name == "loader"


def test_missing_numbers_are_none(read: Read) -> None:
    trace = read([{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}])
    assert (trace.places[0].id, trace.rows[0].id) == (0, 0)


@pytest.mark.parametrize(
    ("category", "backend"),
    [("cuda_runtime", "cuda"), ("xpu_runtime", "xpu"), ("privateuse1_runtime", "privateuseone")],
)
def test_the_backend_is_that_of_the_calls(read: Read, category: str, backend: str) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    trace = read([{**slice_of("call", 1, 1), "cat": category}, kernel])
    assert [place.backend for place in trace.places] == ["cpu", backend]


def test_devices_have_the_backends_that_devprof_writes_for_their_numbers(read: Read) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "tid": 0, "ts": 1, "dur": 1}
    events = [{**kernel, "pid": pid} for pid in (0, 1, 2)]
    trace = read(file_of(*events, devprof={"version": "1", "backends": {"0": "openreg", "1": ["x"], "7": "other"}}))
    assert [(place.id, place.backend) for place in trace.places] == [(0, "openreg"), (1, "cuda"), (2, "cuda")]
    assert "backends" not in trace.facts
    idle = {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "other 0"}}
    known = read(file_of(*events, idle, devprof={"version": "1", "backends": {"7": "other"}}))
    assert [(place.kind, place.backend) for place in known.places if place.id == 7] == [(PlaceKind.DEVICE, "other")]
    assert read(file_of(*events[:1], devprof={"backends": 5})).places[0].backend == "cuda"
