"""`devprof merge`, and what the other commands print as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devprof.pipeline.files import load
from tests.cli.command import devprof
from tests.unit.pipeline.rank_traces import BEGIN_NS, Collective, rank_trace


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two ranks; the second one's clock is 40 ns ahead."""
    paths = [tmp_path / "a.devprof", tmp_path / "b.devprof"]
    for rank, path in enumerate(paths):
        rank_trace(rank=rank, collectives=[Collective("allreduce", BEGIN_NS + 500 + 40 * rank)]).save(path)
    return paths


@pytest.mark.parametrize("name", ["all.devprof", "all.json", "all.pftrace"])
def test_ranks_become_one_file_of_the_format_that_its_name_says(files: list[Path], tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    done = devprof("merge", *files, "-o", out, "--align", "collectives")
    assert (done.returncode, done.stderr) == (0, "")
    assert "-40 ns" in done.stdout
    assert f"{out}: 16 events" in done.stdout
    if not name.endswith("pftrace"):
        trace = load(out)
        assert len(trace) == 16
        assert sorted(place.name for place in trace.places) == [
            "rank 0: GPU 0",
            "rank 0: python",
            "rank 1: GPU 0 (device 0)",
            "rank 1: python (pid 7)",
        ]


def test_what_was_done_is_printed_as_json(files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "all.devprof"
    done = devprof("merge", *files, "-o", out, "--align", "collectives", "--json", "--workers", "1")
    said = json.loads(done.stdout)
    assert (said["trace"], said["bytes"]) == (str(out), out.stat().st_size)
    assert said["alignment"] == {"by": "collectives", "reference_rank": 0, "notes": []}
    shown = [(rank["rank"], rank["file"], rank["events"], rank["shift_ns"], rank["matched"]) for rank in said["ranks"]]
    assert shown == [(0, str(files[0]), 8, 0, 0), (1, str(files[1]), 8, -40, 1)]


WRONG = {
    "alignment": (["--align", "stars", "-o", "all.devprof"], "align is 'stars'"),
    "format": (["-o", "all.doc"], "nothing is known to write 'all.doc'"),
    "folder": (["-o", "absent/all.devprof"], "there is no directory"),
    "file": (["absent.json", "-o", "all.devprof"], "absent.json"),
}


@pytest.mark.parametrize(("words", "says"), WRONG.values(), ids=WRONG)
def test_wrong_use_is_one_line_and_exit_code_2(files: list[Path], words: list[str], says: str) -> None:
    done = devprof("merge", *files, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_converted_file_is_described_as_json(files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    said = json.loads(devprof("convert", files[0], out, "--json").stdout)
    assert said == {"trace": str(out), "events": 8, "bytes": out.stat().st_size, "left_out": {}}


def test_a_file_that_cannot_be_written_is_one_line_and_exit_code_2(files: list[Path]) -> None:
    done = devprof("convert", files[0], "/proc/out.devprof")
    assert done.returncode == 2
    assert done.stderr.startswith("devprof: ")
    assert len(done.stderr.splitlines()) == 1


def test_plugins_and_the_environment_are_described_as_json(tmp_path: Path) -> None:
    plugins = json.loads(devprof("plugins", "--json").stdout)
    assert set(plugins) == {"plugins", "failures"}
    doctor = devprof("doctor", "--json", DEVPROF_CACHE=str(tmp_path))
    said = json.loads(doctor.stdout)
    assert said["broken"] is (doctor.returncode == 1)
    assert {"bridge", "sink"} <= set(said["libraries"])
    assert set(said["plugins"]) == {one["name"] for one in plugins["plugins"]}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_the_commands(shell: str) -> None:
    done = devprof("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "_DEVPROF_COMPLETE" in done.stdout
    words = {"COMP_WORDS": "devprof me", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "devprof me"}
    found = devprof(**words, _TYPER_COMPLETE_FISH_ACTION="get-args", _DEVPROF_COMPLETE=f"complete_{shell}")
    assert "merge" in found.stdout
