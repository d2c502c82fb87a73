"""Numbers of processes and threads, and what they are called."""

from __future__ import annotations

import json

import numpy as np
import pytest

from devprof.export.tracks import Tracks
from devprof.store import Place, PlaceKind, Row

HOST, DEVICE = PlaceKind.HOST, PlaceKind.DEVICE


def tracks_of(places: list[Place], rows: list[Row], lanes: list[int] | None = None) -> Tracks:
    return Tracks(places, rows, np.array(lanes or [1] * len(rows)))


def named(tracks: Tracks) -> list[tuple[str, int, int, object]]:
    events = [json.loads(text) for text in tracks.names("0.000")]
    return [(event["name"], event["pid"], event["tid"], *event["args"].values()) for event in events]


def test_a_device_whose_index_is_a_process_id_moves_and_the_process_stays() -> None:
    tracks = tracks_of([Place(0, DEVICE, backend="sim"), Place(0, HOST)], [Row(0, 0), Row(1, 0)])
    assert tracks.texts == ['"pid":5000000,"tid":0', '"pid":0,"tid":0']
    assert named(tracks) == [
        ("process_name", 5000000, 0, "sim 0"),
        ("process_labels", 5000000, 0, ""),
        ("process_sort_index", 5000000, 0, 5000000),
        ("thread_name", 5000000, 0, "stream 0"),
        ("thread_sort_index", 5000000, 0, 0),
        ("process_name", 0, 0, "process 0"),
        ("process_labels", 0, 0, "CPU"),
        ("process_sort_index", 0, 0, 0),
        ("thread_name", 0, 0, "thread 0"),
        ("thread_sort_index", 0, 0, 0),
    ]


def test_threads_whose_numbers_share_their_low_bits_are_two_rows_with_their_real_numbers() -> None:
    thread = 140339968804608
    tracks = tracks_of([Place(1, HOST)], [Row(0, thread), Row(0, thread + 2**32)])
    assert tracks.texts == ['"pid":1,"tid":1073741824', '"pid":1,"tid":1073741825']
    assert [one[3] for one in named(tracks) if one[0] == "thread_name"] == [
        f"thread {thread}",
        f"thread {thread + 2**32}",
    ]


@pytest.mark.parametrize(
    ("rows", "tids"),
    [
        ([-1, 1], [1, 2**30]),
        ([1, -1], [1, 2**30]),
        ([-5], [5]),
        ([-(2**63)], [2**30]),
        ([2**30, -(2**63)], [2**30, 2**30 + 1]),
    ],
)
def test_the_sign_of_a_row_is_dropped_where_that_leaves_it_apart(rows: list[int], tids: list[int]) -> None:
    tracks = tracks_of([Place(7, DEVICE)], [Row(0, row) for row in rows])
    assert tracks.texts == [f'"pid":7,"tid":{tid}' for tid in tids]


def test_devices_stand_after_every_host_and_the_row_of_overhead_after_devices() -> None:
    places = [Place(1, DEVICE), Place(9_000_000, HOST), Place(-1, DEVICE), Place(3, DEVICE, sort_index=2)]
    indices = [one[3] for one in named(tracks_of(places, [])) if one[0] == "process_sort_index"]
    assert indices == [9_000_002, 9_000_000, 0x1000000, 2]


def test_rows_keep_the_order_that_they_were_given() -> None:
    tracks = tracks_of([Place(1, DEVICE)], [Row(0, 5, "e"), Row(0, 6, "f", -1), Row(0, 4, "d")], [2, 1, 1])
    order = [(one[2], one[3]) for one in named(tracks) if one[0] == "thread_sort_index"]
    names = [(one[2], one[3]) for one in named(tracks) if one[0] == "thread_name"]
    assert names == [(6, "f"), (4, "d"), (5, "e"), (7, "e (2)")]
    assert order == [(6, 0), (4, 1), (5, 2), (7, 3)]
