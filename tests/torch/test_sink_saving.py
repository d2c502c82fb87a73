"""A finished profile is exported as often as wanted, before and after its Trace was asked for, with torch's own bytes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from kineto_file import shown_by_trace
from toyland import BOTH, CPU, Join, Program, Runtime

import devprof.torch
from devprof.torch import sink_native


def recorded(activities: Any = (CPU,), **options: Any) -> torch.profiler.profile:
    with toyland.profile(activities, **options) as prof:
        torch.nn.Linear(4, 2)(torch.ones(3, 4)).sum().backward()
    return prof


def written(prof: Any, folder: Path) -> bytes:
    """Export to the same name each time: the file holds it."""
    path = folder / "trace.json"
    path.unlink(missing_ok=True)
    prof.export_chrome_trace(str(path))
    return path.read_bytes()


def test_every_export_writes_the_bytes_of_torchs_first_one(tmp_path: Path) -> None:
    prof = recorded(record_shapes=True, with_stack=True, profile_memory=True)
    first = written(prof, tmp_path)  # torch's own code
    devprof.torch.trace_of(prof)
    assert [written(prof, tmp_path) for _ in range(3)] == [first] * 3


def test_a_trace_asked_for_first_leaves_torchs_own_save_as_it_is(tmp_path: Path) -> None:
    prof = recorded(record_shapes=True)
    devprof.torch.trace_of(prof)
    devprof.torch.uninstall()
    try:
        own = written(prof, tmp_path)
        with pytest.raises(RuntimeError, match="already saved"):
            written(prof, tmp_path)
    finally:
        devprof.torch.install()
    assert written(prof, tmp_path) == own


def test_a_profile_that_torch_saved_without_devprof_still_has_its_trace(tmp_path: Path) -> None:
    devprof.torch.uninstall()
    try:
        prof = recorded()
        own = written(prof, tmp_path)
    finally:
        devprof.torch.install()
    assert len(devprof.torch.trace_of(prof)) > 0
    assert written(prof, tmp_path) == own


def test_device_sessions_are_exported_again_as_well(join: Join, tmp_path: Path) -> None:
    runtime = Runtime()
    join(script=runtime.script)
    with toyland.profile(BOTH) as prof:
        toyland.run_in_op(lambda: runtime.launch("k", works=3))
    before = shown_by_trace(devprof.torch.trace_of(prof))
    first = written(prof, tmp_path)
    assert written(prof, tmp_path) == first
    assert b'"k"' in first
    assert shown_by_trace(devprof.torch.trace_of(prof)) == before


def test_compressed_exports_repeat_too(tmp_path: Path) -> None:
    prof = recorded()
    texts = []
    for _ in range(2):
        path = tmp_path / "trace.json.gz"
        prof.export_chrome_trace(str(path))
        with gzip.open(path, "rt") as file:
            texts.append(file.read().partition('"traceName"')[0])  # torch names a temporary file there
    assert texts[0] == texts[1]
    assert texts[0].count("aten::addmm") == 1


def test_an_export_to_a_folder_that_is_not_there_fails_as_torch_fails(tmp_path: Path) -> None:
    """Kineto logs it and raises nothing; the profile can be exported afterwards."""
    prof = recorded()
    prof.export_chrome_trace(str(tmp_path / "no such folder" / "trace.json"))
    assert b"aten::addmm" in written(prof, tmp_path)


def test_names_of_files_need_not_be_ascii(tmp_path: Path) -> None:
    prof = recorded()
    for name in ("eins.json", "zwölf 十二.json"):
        prof.export_chrome_trace(str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["eins.json", "zwölf 十二.json"]


def test_an_ordinary_session_with_one_export_loads_nothing_native(program: Program) -> None:
    said = program("""
        import torch, toyland, devprof.torch
        devprof.torch.install()
        with toyland.profile([toyland.CPU]) as prof:
            torch.ones(2) + 1
        prof.export_chrome_trace("a.json")
        maps = open("/proc/self/maps").read()
        toyland.say(sink="/sink-" in maps, bridge="/bridge-" in maps)
    """)
    assert (said["sink"], said["bridge"]) == (False, False)


def test_a_trace_of_a_host_session_loads_the_sink_and_no_bridge(program: Program) -> None:
    said = program("""
        import torch, toyland, devprof.torch
        devprof.torch.install()
        with toyland.profile([toyland.CPU]) as prof:
            torch.ones(2) + 1
        n = len(devprof.torch.trace_of(prof))
        maps = open("/proc/self/maps").read()
        toyland.say(n=n, sink="/sink-" in maps, bridge="/bridge-" in maps)
    """)
    assert said["n"] > 0
    assert (said["sink"], said["bridge"]) == (True, False)


def test_a_second_export_without_the_native_part_is_torchs_refusal_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prof = recorded()
    written(prof, tmp_path)
    monkeypatch.setenv("DEVPROF_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("DEVPROF_BUILD", "never")
    sink_native._library.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="already saved") as refused:
            written(prof, tmp_path)
    finally:
        sink_native._library.cache_clear()
    assert "devprof build sink" in "".join(refused.value.__notes__)


def test_what_is_installed_twice_is_taken_away_at_once() -> None:
    own = torch._C._autograd._ProfilerResult.save
    devprof.torch.uninstall()
    original = torch._C._autograd._ProfilerResult.save
    devprof.torch.install()
    devprof.torch.install()
    assert torch._C._autograd._ProfilerResult.save is not original
    devprof.torch.uninstall()
    assert torch._C._autograd._ProfilerResult.save is original
    devprof.torch.install()
    assert own is not original
