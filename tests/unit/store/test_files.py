"""A trace comes back from its file as it was, and a damaged file says what is wrong with it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.errors import TraceFileError, UsageError
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.store import COLUMNS, ItemKind, Place, PlaceKind, Row, Trace, TraceBuilder, load, save


def trace_of(*names: str) -> Trace:
    builder = TraceBuilder()
    host = builder.place(Place(4321, PlaceKind.HOST, "python"))
    toy = builder.place(Place(1, PlaceKind.DEVICE, "toy", "label", 7, "toy", {"memory": 5}))
    thread, stream = builder.row(Row(host, 7, "thread")), builder.row(Row(toy, -3, "stream", 2))
    records = [
        GenericTraceActivity(ActivityType.CPU_OP, name, 10 + i, 20, id=i + 1, metadata={"i": i, "s": name, "f": 0.5})
        for i, name in enumerate(names)
    ]
    builder.add(ActivityBatch.from_activities(records), thread)
    kernel = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 1, 2, metadata={"grid": (1, 2, 3), "b": True})
    builder.add(ActivityBatch.from_activities([kernel]), stream)
    counter = GenericTraceActivity(ActivityType.MTIA_COUNTERS, "c", 1, 1, counter_values={"watts": 2.5})
    builder.add(ActivityBatch.from_activities([counter]), stream)
    builder.add_items("shape", ItemKind.JSON, [0], ["[[1, 2]]"])
    return builder.build(window_start_ns=1, window_end_ns=2**62, facts={"host": "python", "n": [1, None, 2.5]})


def contents(trace: Trace) -> dict[str, object]:
    items = {k: (c.kind, c.events.tolist(), c.values.tolist()) for k, c in {**trace.items, **trace.counters}.items()}
    columns = {key: (getattr(trace, key).dtype, getattr(trace, key).tolist()) for key in COLUMNS}
    rest = [getattr(trace, key) for key in ("strings", "places", "rows", "window_start_ns", "window_end_ns", "facts")]
    return {"items": items, "columns": columns, "rest": rest}


@given(st.lists(st.text(st.characters()), max_size=6))
def test_a_trace_comes_back_as_it_was_whatever_its_texts(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        save(trace_of(*names), Path(directory) / "t.devprof")
        assert contents(load(Path(directory) / "t.devprof")) == contents(trace_of(*names))


def test_an_empty_trace_comes_back(tmp_path: Path) -> None:
    save(TraceBuilder().build(), tmp_path / "empty.devprof")
    assert contents(load(tmp_path / "empty.devprof")) == contents(TraceBuilder().build())


def test_columns_are_mapped_aligned_and_read_only(tmp_path: Path) -> None:
    save(trace_of("a", "b", "c"), tmp_path / "t.devprof")
    trace = load(tmp_path / "t.devprof")
    for key in COLUMNS:
        column = getattr(trace, key)
        assert column.flags.aligned
        assert not column.flags.owndata
        assert not column.flags.writeable


def test_the_file_is_an_ordinary_archive_and_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(trace_of("a"), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("manifest.json"))["version"] == 1
        with archive.open("columns/start_ns.npy") as member:
            assert np.load(member).tolist() == [10, 1, 1]


def test_a_file_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "t.devprof"
    save(trace_of("a"), path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save(trace_of("b").with_facts(bad=object()), path)
    assert (path.read_bytes(), [p.name for p in tmp_path.iterdir()]) == (before, ["t.devprof"])
    with pytest.raises(UsageError, match="no directory"):
        save(trace_of("a"), tmp_path / "none" / "t.devprof")
    with pytest.raises(UsageError, match="is a directory"):
        save(trace_of("a"), tmp_path)


def test_the_file_has_the_permissions_of_a_plain_one_or_of_the_one_it_replaces(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    save(trace_of("a"), tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode
    plain.chmod(0o600)
    save(trace_of("a"), plain)
    assert plain.stat().st_mode & 0o777 == 0o600


def test_a_device_or_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", tmp_path / "received.devprof"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.write_bytes(pipe.read_bytes()))
    reader.start()
    save(trace_of("a"), pipe)
    reader.join(60)
    assert contents(load(received)) == contents(trace_of("a"))
    assert pipe.is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pipe", "received.devprof"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.devprof"
    link.symlink_to("there/t.devprof")
    save(trace_of("a"), link)
    assert link.is_symlink()
    assert contents(load(tmp_path / "there" / "t.devprof")) == contents(trace_of("a"))


def test_facts_that_json_has_no_number_for_are_kept_as_texts(tmp_path: Path) -> None:
    facts = {"n": [float("nan"), {"i": float("-inf")}], "long": 16**5000, "short": 10**30, "yes": True, "none": None}
    save(trace_of("a").with_facts(**facts), tmp_path / "t.devprof")
    assert load(tmp_path / "t.devprof").facts == {
        "host": "python",
        "n": ["nan", {"i": "-inf"}],
        "long": "0x1" + "0" * 5000,
        "short": 10**30,
        "yes": True,
        "none": None,
    }


def test_every_cut_of_a_file_is_refused_by_name(tmp_path: Path) -> None:
    save(trace_of("a", "b"), tmp_path / "t.devprof")
    whole = (tmp_path / "t.devprof").read_bytes()
    cut = tmp_path / "cut.devprof"
    for size in range(0, len(whole), 97):
        cut.write_bytes(whole[:size])
        with pytest.raises(TraceFileError, match=r"cut\.devprof"):
            load(cut)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda whole: whole[: len(whole) // 2], "Most likely it was copied in part: copy it again"),
        (lambda whole: b"", "it is empty; save the trace again"),
        (lambda whole: b"{}", "a .devprof file is an archive that begins with 'PK'"),
    ],
)
def test_a_file_that_is_not_whole_says_what_it_is_and_what_to_do(
    content: Callable[[bytes], bytes], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.devprof"
    save(trace_of("a", "b"), path)
    path.write_bytes(content(path.read_bytes()))
    with pytest.raises(TraceFileError, match=re.escape(said)):
        load(path)


@given(st.data())
def test_a_file_with_changed_bytes_is_a_trace_or_refused_by_name(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t.devprof"
        save(trace_of("a", "b"), path)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        refusals = []
        try:
            load(path)
        except TraceFileError as error:
            refusals.append(str(error))
        assert all(str(path) in refusal for refusal in refusals)


def rewritten(tmp_path: Path, change: object) -> Path:
    save(trace_of("a", "b"), tmp_path / "t.devprof")
    with (
        zipfile.ZipFile(tmp_path / "t.devprof") as old,
        zipfile.ZipFile(tmp_path / "changed.devprof", "w", zipfile.ZIP_STORED) as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                manifest.update(change)  # type: ignore[call-overload]
                content = json.dumps(manifest).encode()
            new.writestr(name, content)
    return tmp_path / "changed.devprof"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not that of a devprof trace"),
        ({"version": 2}, "has version 2 of the format, and this devprof reads versions 1 to 1"),
        ({"version": "1"}, "version '1'"),
        ({"events": 99}, "says 99 events, and it holds 4"),
        ({"strings": 1}, "table of texts"),
        ({"rows": [[9, 1, "x", None]] * 2}, "a row is in place 9"),
        ({"rows": [["x"]]}, "no row where"),
        ({"rows": []}, "row holds"),
        ({"places": [{}]}, "no place where"),
        ({"items": [{"key": "k", "kind": "PICKLE"}]}, "no column where"),
        ({"facts": 5}, "no dict under 'facts'"),
    ],
)
def test_a_manifest_that_does_not_fit_says_what_is_wrong(tmp_path: Path, change: object, message: str) -> None:
    with pytest.raises(TraceFileError, match=message):
        load(rewritten(tmp_path, change))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("{}")
    with pytest.raises(TraceFileError, match="cannot read"):
        load(other)
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", "{}" * 1000)
    with pytest.raises(TraceFileError, match=r"manifest\.json is compressed"):
        load(other)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_objects_in_an_array_are_never_unpickled(tmp_path: Path) -> None:
    save(trace_of("a"), tmp_path / "t.devprof")
    path = tmp_path / "evil.devprof"
    with zipfile.ZipFile(tmp_path / "t.devprof") as old, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            if name != "columns/id.npy":
                new.writestr(name, old.read(name))
        with new.open("columns/id.npy", "w") as member:
            np.save(member, np.array([print, print, print], dtype=object), allow_pickle=True)
    with pytest.raises(
        TraceFileError, match=r"its columns/id\.npy is no array that a column can be; its header is .*'\|O'"
    ):
        load(path)


@pytest.mark.parametrize("byte", [0, ord("("), ord("'"), ord("\n"), 255])
def test_a_damaged_header_of_an_array_is_refused_by_name(tmp_path: Path, byte: int) -> None:
    save(trace_of("a"), tmp_path / "t.devprof")
    content = bytearray((tmp_path / "t.devprof").read_bytes())
    content[content.index(b"'descr'")] = byte
    (tmp_path / "t.devprof").write_bytes(content)
    if byte == ord("'"):
        assert len(load(tmp_path / "t.devprof")) == 3
    else:
        with pytest.raises(TraceFileError, match=r"t\.devprof as a devprof trace: its .*\.npy is no array"):
            load(tmp_path / "t.devprof")


def test_part_of_a_mapped_trace_can_be_taken_after_the_file_is_gone(tmp_path: Path) -> None:
    save(trace_of("a", "b"), tmp_path / "t.devprof")
    trace = load(tmp_path / "t.devprof")
    (tmp_path / "t.devprof").unlink()
    assert dataclasses.replace(trace.take(np.array([0])), facts={}).strings == trace.strings
