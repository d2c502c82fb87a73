"""`devprof run`: the program behaves as under ``python``, and its trace is there however it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from devprof.pipeline.files import load

PROGRAM = """\
import json, os, pickle, sys
import __main__
import devprof
import beside

class Thing: pass

with devprof.record_function("work"):
    beside.called()
assert type(pickle.loads(pickle.dumps(Thing()))) is Thing  # __main__ is this module
print(json.dumps({"argv": sys.argv, "path": sys.path[0], "name": __name__, "file": __file__, "main": __main__.Thing is Thing}))
"""
ENDS = {
    "ok": ("", 0, ""),
    "raises": ("raise ValueError('too bad')", 1, "ValueError: too bad"),
    "exits with a number": ("sys.exit(7)", 7, ""),
    "exits with a text": ("sys.exit('good bye')", 1, "good bye"),
    "exits with nothing": ("sys.exit()", 0, ""),
    "is interrupted": ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
    "raises devprof's own error": ("raise devprof.DevprofError('mine')", 1, "DevprofError: mine"),
}


def run(*words: str | Path, cwd: Path, launcher: tuple[str, ...] = ("-m", "devprof", "run"), **environment: str) -> Any:
    """Run the command; without torch, unless the words say otherwise."""
    return subprocess.run(
        [sys.executable, *launcher, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
        env={**os.environ, **environment},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program and a module beside it, which is not the folder that it is run from."""
    place = tmp_path / "programs"
    place.mkdir()
    (place / "program.py").write_text(PROGRAM)
    (place / "beside.py").write_text("def called(): pass\n")
    (place / "package").mkdir()
    (place / "package" / "__main__.py").write_text(PROGRAM)
    return place


def names(path: Path) -> list[str]:
    trace = load(path)
    return [trace.name_of(event) for event in range(len(trace))]


def test_a_script_finds_what_python_gives_it(folder: Path, tmp_path: Path) -> None:
    words = (folder / "program.py", "-o", "mine", "--host", "x")
    done = run("--host", "python", *words, cwd=tmp_path)
    plain = run(*words, cwd=tmp_path, launcher=())
    assert done.returncode == plain.returncode == 0, done.stderr
    assert done.stdout == plain.stdout
    assert json.loads(done.stdout)["argv"] == [str(folder / "program.py"), "-o", "mine", "--host", "x"]
    assert names(tmp_path / "program.devprof") == ["work"]


def test_a_module_finds_what_python_gives_it(folder: Path, tmp_path: Path) -> None:
    done = run("--host", "python", "-m", "package", "-m", "mine", cwd=folder)
    plain = run("-m", "package", "-m", "mine", cwd=folder, launcher=())
    assert done.stdout == plain.stdout, done.stderr
    assert json.loads(done.stdout)["argv"][1:] == ["-m", "mine"]
    assert names(folder / "package.devprof") == ["work"]


def test_a_folder_and_an_archive_are_programs_too(folder: Path, tmp_path: Path) -> None:
    (folder / "package" / "beside.py").write_text("def called(): pass\n")
    archive = tmp_path / "program.pyz"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("__main__.py", "beside.py"):
            file.write(folder / "package" / name, name)
    for program in (folder / "package", archive):
        done = run("--host", "python", "-o", "out.devprof", program, "a", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["path"] == str(program)
        assert names(tmp_path / "out.devprof") == ["work"]


@pytest.mark.parametrize(("code", "expected", "says"), ENDS.values(), ids=ENDS)
def test_however_a_program_ends_its_trace_is_written_and_its_exit_code_is_kept(
    tmp_path: Path, code: str, expected: int, says: str
) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"import sys, devprof\nwith devprof.record_function('work'):\n    pass\n{code}\n")
    done = run("--host", "python", "-q", script, cwd=tmp_path)
    plain = run(script, cwd=tmp_path, launcher=())
    assert done.returncode == expected
    assert plain.returncode in (expected, -signal.SIGINT)
    assert says in done.stderr
    assert done.stderr == plain.stderr
    assert names(tmp_path / "program.devprof") == ["work"]


TERMINATED = """
import multiprocessing, os, signal, sys, time, devprof
def wait():
    time.sleep(60)
if __name__ == "__main__":
    with devprof.record_function("work"):
        child = multiprocessing.get_context("fork").Process(target=wait)
        child.start()
        child.terminate()
        child.join()
        print(child.exitcode, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
"""


def test_a_program_that_is_told_to_end_leaves_its_trace_and_its_children_end_as_ever(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TERMINATED)
    done = run("--host", "python", "-q", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, f"{-signal.SIGTERM}\n", "")
    assert names(tmp_path / "program.devprof") == ["work"]


def test_a_programs_own_way_of_ending_is_its_own(tmp_path: Path) -> None:
    handler = "import os, signal\nsignal.signal(signal.SIGTERM, lambda *a: print('mine'))\n"
    (tmp_path / "program.py").write_text(f"{handler}os.kill(os.getpid(), signal.SIGTERM)\n")
    done = run("--host", "python", "-q", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mine\n")


BROKEN_PLUGIN = """
import devprof
from devprof import registry
from devprof.testing import ScriptedProfiler, plugin_of
def broken(): raise RuntimeError("lost the device")
registry.register(plugin_of(ScriptedProfiler(label="toy", faults={"stop": broken})), "toy")
"""


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--strict"], 3)])
def test_with_strict_a_plugin_that_misbehaves_is_an_exit_code(tmp_path: Path, words: list[str], code: int) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN_PLUGIN)
    (tmp_path / "program.py").write_text("print('ran')\n")
    done = run("--host", "python", *words, "program.py", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (code, "ran\n"), done.stderr
    assert "in session.stop, until the session ends" in done.stderr
    assert ("devprof: plugin 'toy', session.stop: RuntimeError: lost the device" in done.stderr.splitlines()) == bool(
        code
    )
    assert load(tmp_path / "program.devprof").facts["report"]["plugins"]["toy"]["set_aside"]["hook"] == "session.stop"


def test_with_strict_a_program_that_fails_keeps_its_own_code(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN_PLUGIN)
    (tmp_path / "program.py").write_text("raise SystemExit(7)\n")
    assert (
        run("--host", "python", "-q", "--strict", "program.py", cwd=tmp_path, PYTHONPATH=str(tmp_path)).returncode == 7
    )


def test_a_traceback_shows_the_programs_frames_only(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("def inner():\n    1 / 0\n\ninner()\n")
    done = run("--host", "python", "-q", script, cwd=tmp_path)
    assert done.stderr == run(script, cwd=tmp_path, launcher=()).stderr
    assert "runpy" not in done.stderr


def test_a_program_that_python_cannot_read_fails_as_under_python(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("def broken(:\n")
    done = run("--host", "python", "-q", script, cwd=tmp_path)
    assert (done.returncode, "SyntaxError" in done.stderr, "Traceback" in done.stderr) == (1, True, False)


def test_what_devprof_says_goes_to_stderr_and_as_json_on_request(folder: Path, tmp_path: Path) -> None:
    done = run("--host", "python", "-a", "cpu", "--json", folder / "program.py", cwd=tmp_path)
    assert json.loads(done.stdout)["name"] == "__main__"
    assert done.stderr.count("\n") == 1, "a program that writes to stderr as well leaves the last line to devprof"
    said = json.loads(done.stderr)
    assert (said["trace"], said["events"], said["exit_code"]) == (str(tmp_path / "program.devprof"), 1, 0)
    assert [(row["name"], row["count"]) for row in said["averages"]] == [("work", 1)]


def test_the_table_and_the_file_are_shown(folder: Path, tmp_path: Path) -> None:
    done = run("--host", "python", folder / "program.py", cwd=tmp_path)
    assert "Self CPU time total" in done.stderr
    assert f"{tmp_path / 'program.devprof'}: 1 events" in done.stderr


def test_a_trace_without_anything_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("x = 1\n")
    done = run("--host", "python", "program.py", cwd=tmp_path)
    assert "--with-stack records functions" in done.stderr


def test_functions_are_recorded_on_request(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("def answer():\n    return 42\n\nanswer()\n")
    run("--host", "python", "--with-stack", "-q", "program.py", cwd=tmp_path)
    assert any("answer" in name for name in names(tmp_path / "program.devprof"))


@pytest.mark.parametrize("name", ["out.json", "out.json.gz", "out.pftrace", "out.devprof"])
def test_the_outputs_name_says_its_format_also_where_the_program_changes_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    source = "import os, devprof\nos.chdir('elsewhere')\nwith devprof.record_function('work'): pass\n"
    (tmp_path / "program.py").write_text(source)
    done = run("--host", "python", "-q", "-o", name, "program.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / name).stat().st_size > 0


def test_each_rank_writes_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import devprof\nwith devprof.record_function('work'): pass\n")
    for rank in ("0", "1"):
        run("--host", "python", "-o", "out.json.gz", "program.py", cwd=tmp_path, RANK=rank, WORLD_SIZE="2")
    paths = sorted(tmp_path.glob("out*"))
    assert [path.name for path in paths] == ["out.rank0.json.gz", "out.rank1.json.gz"]
    assert [load(path).facts["metadata"] for path in paths] == [
        {"distributedInfo": {"rank": rank, "world_size": 2}} for rank in (0, 1)
    ]


def test_a_ring_keeps_the_latest_part_and_says_what_it_let_go(tmp_path: Path) -> None:
    text = "import devprof\nfor number in range(20_000):\n    with devprof.record_function(f'step {number}'): pass\n"
    (tmp_path / "program.py").write_text(text)
    done = run("--host", "python", "-a", "cpu", "--ring", "1M", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = load(tmp_path / "program.devprof")
    names = [trace.name_of(at) for at in range(len(trace))]
    assert names == [f"step {number}" for number in range(20_000 - len(trace), 20_000)]
    assert 500 < len(trace) < 15_000
    assert f"host: produced 20000 = emitted {len(trace)} + dropped {20_000 - len(trace)}" in done.stderr


WRONG = {
    "no file": (["absent.py"], "there is no file absent.py; for a module write `devprof run -m absent.py`"),
    "no module": (["-m", "absent"], "cannot run absent as a module: No module named absent"),
    "no format": (["-o", "out.doc", "program.py"], "nothing is known to write 'out.doc'"),
    "no folder": (["-o", "absent/out.json", "program.py"], "there is no directory"),
    "no host": (["--host", "java", "program.py"], "host is 'java'"),
    "no size": (["--ring", "lots", "program.py"], "--ring is 'lots'; expected a number of bytes, such as 64M"),
    "no room": (["--ring", "1k", "program.py"], "max_bytes is 1024; expected 65536 or more"),
}


@pytest.mark.parametrize(("words", "says"), WRONG.values(), ids=WRONG)
def test_wrong_use_is_one_line_before_the_program_runs(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "program.py").write_text("print('ran')\n")
    host = [] if "--host" in words else ["--host", "python"]
    done = run(*host, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("devprof: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_trace_that_cannot_be_written_is_exit_code_2_unless_the_program_failed_itself(tmp_path: Path) -> None:
    for code, expected in (("", 2), ("sys.exit(5)", 5)):
        (tmp_path / "program.py").write_text(f"import os, sys\nos.rmdir('out')\n{code}\n")
        (tmp_path / "out").mkdir()
        done = run("--host", "python", "-o", "out/t.devprof", "program.py", cwd=tmp_path)
        assert done.returncode == expected
        assert "there is no directory" in done.stderr


def test_a_torch_program_is_recorded_with_its_ops(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the program uses torch")
    (tmp_path / "program.py").write_text("import torch\ntorch.ones(3) + 1\n")
    job = {"KINETO_LOG_LEVEL": "6", "RANK": "0", "WORLD_SIZE": "1"}
    done = run("-a", "cpu", "-o", "out.json", "--record-shapes", "program.py", cwd=tmp_path, **job)
    assert done.returncode == 0, done.stderr
    assert "aten::add" in names(tmp_path / "out.json")
    assert load(tmp_path / "out.json").facts["metadata"] == {"distributedInfo": {"rank": 0, "world_size": 1}}
    assert "aten::add" in done.stderr
