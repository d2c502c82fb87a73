"""A recording comes back from its file as it was, and a damaged or hostile file is refused in words."""

from __future__ import annotations

import dataclasses
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sessions import Session, recording_of

from devprof.errors import TraceFileError, UsageError
from devprof.model import ActivityBatch, GenericTraceActivity
from devprof.model.columns import COLUMNS
from devprof.replay import HostRanges, RecordedSession, Recording, files, load, save
from devprof.replay.recording import WorkCall


def batch_values(batch: ActivityBatch) -> Any:
    names = [batch.strings[number] for number in batch.name.tolist()]
    columns = {key: getattr(batch, key).tolist() for key in COLUMNS if key != "name"}
    return names, columns, batch.clock, [one.metadata for one in batch.activities()]


def values(recording: Recording) -> Any:
    def of_session(session: RecordedSession) -> Any:
        plain = {field.name: getattr(session, field.name) for field in dataclasses.fields(session)}
        host = {field.name: list(getattr(session.host, field.name)) for field in dataclasses.fields(HostRanges)}
        return {**plain, "batches": [batch_values(batch) for batch in session.batches], "host": host}

    plain = {field.name: getattr(recording, field.name) for field in dataclasses.fields(recording)}
    return {**plain, "sessions": [of_session(session) for session in recording.sessions]}


def full() -> Recording:
    recording = recording_of()
    (session,) = recording.sessions
    at = np.arange(3, dtype=np.int64) + 10**9
    session.host = HostRanges(
        ("a", "b", "\udc80"), np.array([41, 42, 43]), np.ones(3, np.int64), at, at + 9, at > 10**9
    )
    recording.calls = [WorkCall("C301 python", "launch", "'x', 1", 41, 0, 1, 10**9, 10**9 + 5, None, "")]
    recording.workload = {"methods": ["launch"], "devices": 2, "ran": []}
    recording.settings = {"sessions": 20, "drift_s": 0.5}
    return recording


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    save(full(), tmp_path / "x.devrec")
    assert values(load(tmp_path / "x.devrec")) == values(full())


def test_a_session_without_records_comes_back(tmp_path: Path) -> None:
    class Idle(Session):
        def calls(self) -> list[GenericTraceActivity]:
            return []

        def kernels(self) -> list[GenericTraceActivity]:
            return []

    save(recording_of(Idle), tmp_path / "x.devrec")
    assert values(load(tmp_path / "x.devrec")) == values(recording_of(Idle))


def test_the_same_recording_gives_the_same_bytes_and_nothing_in_it_is_code(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(full(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {".npy", ".bin", ".json"}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    np.lib.format.read_array(member, allow_pickle=False)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        save(full(), tmp_path / "nowhere/x.devrec")


# -- hostile files -----------------------------------------------------------------------------------------------------------


def changed(path: Path, change: Any) -> None:
    """Write the file again with another manifest."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def put(*keys: Any, value: Any) -> Any:
    def change(manifest: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


HOSTILE = {
    "another format": (put("format", value="devprof trace"), "not that of a devprof recording"),
    "a later version": (put("version", value=2), "version 2 of the format; this devprof reads 1 to 1"),
    "a version that is none": (put("version", value=True), "version True"),
    "no sessions": (put("sessions", value={}), "no list under 'sessions'"),
    "too many texts": (put("strings", value=10**9), "table of texts does not hold together"),
    "a batch beyond the records": (
        put("sessions", 0, "batches", value=[[0, 10**6, "unix_ns"]]),
        "do not follow each other",
    ),
    "batches that overlap": (put("sessions", 0, "batches", value=[[0, 4, "npu"]] * 3), "do not follow each other"),
    "a batch that is none": (put("sessions", 0, "batches", value=[["0", 1, "npu"]]), "no batch where one should be"),
    "ranges beyond the host's": (put("sessions", 0, "host", value=[0, 99]), "ranges do not follow each other"),
    "an unknown type": (put("available", value=["NO_SUCH"]), "no activity type where one should be"),
    "an unknown mark": (put("sessions", 0, "said", "errors", value={"$exec": "1"}), "unknown mark '\\$exec'"),
    "a mark with too much": (put("sessions", 0, "said", "errors", value={"$float": "1", "x": 2}), "no recorded one"),
    "a float that is none": (put("sessions", 0, "said", "errors", value={"$float": "lots"}), "no recorded one"),
    "a number for a text": (put("sessions", 0, "hooks", 0, value=[1, 2, 3, 4]), "no HookCall where one should be"),
    "too few fields": (put("sessions", 0, "hooks", 0, value=["start"]), "no HookCall where one should be"),
    "a truth for a number": (put("sessions", 0, "hooks", 0, value=["start", True, 3, ""]), "no HookCall"),
    "a clock that is none": (put("sessions", 0, "domain", value=["npu", "fast", False]), "a clock's rate is 'fast'"),
    "a sample that is none": (put("sessions", 0, "samples", value=[[1, 2.5, 3]]), "expected a whole number, found 2.5"),
    "a sample of three hundred bits": (
        put("sessions", 0, "samples", value=[[1, 2**300, 3]]),
        "expected a whole number",
    ),
    "an item of no table": (put("items", 0, "table", value="strings"), "do not hold together"),
    "an item of no kind": (put("items", 0, "kind", value="CODE"), "CODE"),
    "settings that are none": (put("settings", value=[1]), "in place of an object"),
    "capabilities that are none": (put("capabilities", value={}), "no capabilities where one should be"),
}


@pytest.mark.parametrize(("change", "says"), HOSTILE.values(), ids=HOSTILE)
def test_a_manifest_that_lies_is_refused_in_words(tmp_path: Path, change: Any, says: str) -> None:
    path = tmp_path / "x.devrec"
    save(full(), path)
    changed(path, change)
    with pytest.raises(TraceFileError, match=says) as raised:
        load(path)
    assert str(path) in str(raised.value)


def test_values_nested_without_end_are_refused(tmp_path: Path) -> None:
    save(full(), tmp_path / "x.devrec")
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    changed(tmp_path / "x.devrec", put("sessions", 0, "said", "errors", value=deep))
    with pytest.raises(TraceFileError, match="nested deeper than 50 levels"):
        load(tmp_path / "x.devrec")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(full(), tmp_path / "x.devrec")
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    with pytest.raises(TraceFileError, match="more than 1,000 are not read"):
        load(tmp_path / "x.devrec")


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip" * 100, b"PK\x05\x06" + bytes(18)])
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.devrec").write_bytes(data)
    with pytest.raises(TraceFileError, match="as a devprof recording"):
        load(tmp_path / "x.devrec")


def test_a_trace_is_no_recording(tmp_path: Path) -> None:
    from devprof.store import TraceBuilder
    from devprof.store import save as save_trace

    save_trace(TraceBuilder().build(), tmp_path / "t.devprof")
    with pytest.raises(TraceFileError, match="its manifest is not that of a devprof recording"):
        load(tmp_path / "t.devprof")


def test_a_file_with_flipped_bytes_is_a_recording_or_is_refused(tmp_path: Path) -> None:
    save(full(), tmp_path / "x.devrec")
    original = (tmp_path / "x.devrec").read_bytes()
    chance = random.Random(7)
    for _ in range(400):
        data = bytearray(original)
        for _ in range(chance.choice((1, 3, 20))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        (tmp_path / "y.devrec").write_bytes(data)
        try:
            found = load(tmp_path / "y.devrec")
        except TraceFileError:
            continue
        assert isinstance(found, Recording)
