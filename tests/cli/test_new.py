"""`devprof new`: what it writes is installed, and its own tests are green at once; nothing is overwritten."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from devprof.scaffold import VARIANTS, Names, files_of

ROOT = Path(__file__).parents[2]
LONG_NAME = "a-name-as-long-as-a-plugins-name-may-be-"[:39] + "x"


def run(*words: str | Path, cwd: Path, expected: int = 0, **environment: str) -> str:
    """Run Python and return what it printed to both streams."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == expected, done.stdout
    return done.stdout


@dataclass(frozen=True)
class Made:
    """A package that was written and installed.

    Attributes:
        folder: its sources.
        site: where it is installed, for PYTHONPATH.
        said: what the command printed.
    """

    folder: Path
    site: Path
    said: str

    def run(self, *words: str | Path, expected: int = 0, **environment: str) -> str:
        """Run Python in the package's folder."""
        return run(*words, cwd=self.folder, expected=expected, PYTHONPATH=str(self.site), **environment)

    def tests(self, *words: str, **environment: str) -> tuple[str, dict[str, int]]:
        """Run the package's own tests; return what pytest printed, and its closing counts."""
        printed = self.run("-m", "pytest", "-rs", "-p", "no:cacheprovider", *words, **environment)
        return printed, {
            what: int(n) for n, what in re.findall(r"(\d+) (\w+)", printed.splitlines()[-1].split(" in ")[0])
        }


def make(folder: Path, name: str, *options: str) -> Made:
    """Write a package with the command, and install it as its author would, without a network."""
    said = run("-m", "devprof", "new", name, *options, cwd=folder)
    made = Made(folder / name, folder / "site", said)
    pip = ["-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    run(
        *pip, "--disable-pip-version-check", "--root-user-action=ignore", "--target", made.site, made.folder, cwd=folder
    )
    return made


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("plain"), "my-npu")


# -- the variants --------------------------------------------------------------------------------------------------------


def test_what_is_written_is_listed_with_the_next_steps(plain: Made) -> None:
    assert plain.said == (
        f"my-npu: {len(files_of(Names.of('my-npu')))} files. Next:\n\n"
        "  cd my-npu\n  pip install -e .\n  pytest\n  python demo.py\n\n"
        "The device is a fake one. README.md says what to replace, in which order.\n"
    )


def test_the_tests_of_a_fresh_package_are_green_without_torch(plain: Made) -> None:
    (plain.site / "torch").mkdir(exist_ok=True)
    (plain.site / "torch/__init__.py").write_text("raise ImportError('not here')\n")
    try:
        printed, counts = plain.tests("tests/test_profile.py", "tests/test_conformance.py", "-k", "not torch")
    finally:
        (plain.site / "torch/__init__.py").unlink()
        (plain.site / "torch").rmdir()
    assert counts["passed"] >= 40, printed
    assert set(counts) <= {"passed", "skipped", "deselected"}


def test_the_tests_of_a_fresh_package_are_green_under_torch_and_skip_only_what_the_device_cannot_do(
    plain: Made,
) -> None:
    pytest.importorskip("torch", reason="these checks run on torch")
    # without the simulated device, which would have torch's one name for such devices
    printed, counts = plain.tests(DEVPROF_OPENREG="0")
    assert counts["passed"] >= 70, printed
    reasons = set(re.findall(r"skipped: needs a (.*)", printed))
    assert "under torch" not in printed
    assert reasons == {
        "workload with device_calls()",
        "workload with graph(name, n)",
        "workload with allocate(n_bytes) and free(handle)",
        "workload with fail()",
        "plugin that is told of each op (CorrelationAccess other than READ)",
        "plugin with stubs for torch's legacy profiler",
    }


def test_the_demo_prints_kernels_under_their_ranges_and_a_clean_account_and_writes_a_trace(plain: Made) -> None:
    printed = plain.run("demo.py")
    assert {"load", "compute", "gemm", "relu"} - set(printed.split()) == set()
    assert "my-npu: produced 6 = emitted 6 + dropped 0 + rejected 0; 3 of 3 device records linked" in printed
    assert (plain.folder / "my-npu.trace.json").stat().st_size > 0


def test_a_fresh_package_is_listed_by_devprof_plugins(plain: Made) -> None:
    listed = json.loads(plain.run("-m", "devprof", "plugins", "--json"))["plugins"]
    (found,) = (one for one in listed if one["name"] == "my-npu")
    assert (found["version"], found["torch_device"]) == ("0.1.0", "my_npu")


# -- what holds of every variant -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my-npu", LONG_NAME])
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_written_holds_no_placeholder_and_passes_linter_and_formatter(
    tmp_path: Path, variant: str, name: str
) -> None:
    pytest.importorskip("ruff", reason="the linter is one of the project's own tools")
    run("-m", "devprof", "new", name, "--variant", variant, "--directory", tmp_path / "made", cwd=tmp_path)
    texts = {path: path.read_text(encoding="utf-8") for path in (tmp_path / "made").rglob("*") if path.is_file()}
    shell = {tmp_path / "made/.github/workflows/ci.yml": "$DEVPROF"}
    left = {path: found for path, text in texts.items() if (found := re.findall(r"\$\w+", text)) if path not in shell}
    assert left == {}
    for path, text in texts.items():
        if path.suffix == ".py" and text:
            assert ast.get_docstring(ast.parse(text)), path
    run("-m", "ruff", "check", "--no-cache", "--extend-select", "E,F,I,UP,B", ".", cwd=tmp_path / "made")
    if len(name) < 20:  # with long names some lines would be broken in other places
        run("-m", "ruff", "format", "--no-cache", "--check", ".", cwd=tmp_path / "made")


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_written_passes_mypy_strict(tmp_path: Path, variant: str) -> None:
    pytest.importorskip("mypy", reason="the type checker is one of the project's own tools")
    pytest.importorskip("torch", reason="without torch its names would be unknown to mypy")
    run("-m", "devprof", "new", "my-npu", "--variant", variant, cwd=tmp_path)
    words = ["-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "cache", "src", "tests"]
    said = run(*words, cwd=tmp_path / "my-npu", MYPYPATH=f"{ROOT}{os.pathsep}src")
    assert said.startswith("Success")


# -- wrong use ---------------------------------------------------------------------------------------------------------------


def test_a_directory_with_something_in_it_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "my-npu").mkdir()
    (tmp_path / "my-npu/mine.txt").write_text("mine")
    said = run("-m", "devprof", "new", "my-npu", cwd=tmp_path, expected=2)
    assert said == (
        "devprof: my-npu is there already, and nothing is overwritten: name another directory with --directory, or remove it\n"
    )
    assert [(path.name, path.read_text()) for path in (tmp_path / "my-npu").iterdir()] == [("mine.txt", "mine")]


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_a_file_or_link_in_the_place_of_the_directory_is_refused(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "my-npu"
    (tmp_path / "elsewhere").mkdir()
    if kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    said = run("-m", "devprof", "new", "my-npu", cwd=tmp_path, expected=2)
    assert "is there already" in said
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_or_a_new_directory_is_filled_also_below_others(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for directory in ("empty", "some/where/else"):
        said = run("-m", "devprof", "new", "my-npu", "-d", directory, "--json", cwd=tmp_path)
        facts = json.loads(said)
        assert facts["directory"] == str(tmp_path / directory)
        assert sorted(facts["files"]) == sorted(
            str(path.relative_to(tmp_path)) for path in (tmp_path / directory).rglob("*") if path.is_file()
        )


WRONG = {
    "name": (["my npu"], "'my npu' cannot be a package's name"),
    "module": (["json"], "it would hide the module 'json'"),
    "variant": (["my-npu", "--variant", "rust"], f"no variant 'rust'; expected one of {', '.join(VARIANTS)}"),
    "device": (["my-npu", "--torch-device", "My-NPU"], "'My-NPU' cannot be a torch device's name"),
}


@pytest.mark.parametrize(("words", "says"), WRONG.values(), ids=WRONG)
def test_wrong_use_is_one_line_and_writes_nothing(tmp_path: Path, words: list[str], says: str) -> None:
    said = run("-m", "devprof", "new", *words, cwd=tmp_path, expected=2)
    assert says in said
    assert len(said.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
