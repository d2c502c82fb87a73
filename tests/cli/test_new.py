"""`devprof new`: what it writes is installed, and its own tests are green at once; nothing is overwritten."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from devprof.contract import NativeBuild
from devprof.native import include_dir, missing
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


@pytest.fixture(scope="session", params=VARIANTS)
def fresh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A package of each variant."""
    variant = str(request.param)
    if variant == "c" and (reason := missing(NativeBuild("any", (), needs_torch=False))):
        pytest.skip(reason)
    return make(tmp_path_factory.mktemp(variant), f"{variant}-npu", "--variant", variant)


NOT_IN_THE_FAKE = {
    "workload with device_calls()",
    "workload with graph(name, n)",
    "workload with allocate(n_bytes) and free(handle)",
    "workload with fail()",
    "plugin that hands over while it records (flush_trace)",
}
TOLD = "plugin that is told of each op (CorrelationAccess other than READ)"
STUBS = "plugin with stubs for torch's legacy profiler"
SKIPPED = {
    "python": NOT_IN_THE_FAKE | {TOLD, STUBS},
    "c": NOT_IN_THE_FAKE | {STUBS},
    "torch": NOT_IN_THE_FAKE | {TOLD},
}


WITHOUT_TORCH = """
import importlib.util, sys, pytest
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
sys.modules["torch"] = None
sys.exit(pytest.main(["-rs", "-p", "no:cacheprovider"]))
"""


def skipped(printed: str) -> set[str]:
    """Return what the kit says that a plugin or a workload lacks."""
    return set(re.findall(r"skipped: needs a (.*)", printed))


# -- the variants --------------------------------------------------------------------------------------------------------


def test_what_is_written_is_listed_with_the_next_steps(plain: Made) -> None:
    assert plain.said == (
        f"my-npu: {len(files_of(Names.of('my-npu')))} files. Next:\n\n"
        '  cd my-npu\n  pip install -e ".[test]"\n  python -m pytest\n  python demo.py\n\n'
        "The device is a fake one. README.md says what to replace, in which order.\n"
    )


@pytest.fixture(scope="session")
def alone(fresh: Made) -> str:
    """What the tests of a fresh package print where there is no torch."""
    return fresh.run("-c", WITHOUT_TORCH)


def test_the_tests_of_a_fresh_package_are_green_without_torch(alone: str) -> None:
    counts = dict(map(reversed, re.findall(r"(\d+) (passed|skipped|failed)", alone.splitlines()[-1])))
    assert int(counts["passed"]) >= 50, alone


def test_the_tests_of_a_fresh_package_are_green_under_torch_and_skip_only_what_the_device_cannot_do(
    fresh: Made, alone: str
) -> None:
    pytest.importorskip("torch", reason="these checks run on torch")
    # with torch in the process, the checks that use none are the same for each variant: one variant has them again
    has_all = fresh.folder.name == "python-npu"
    # without the simulated device, which would have torch's one name for such devices
    printed, counts = fresh.tests(*([] if has_all else ["-k", "on_torch or c8"]), DEVPROF_OPENREG="0")
    assert counts["passed"] >= (80 if has_all else 30), printed
    assert "under torch" not in printed
    expected = SKIPPED[fresh.folder.name.removesuffix("-npu")]
    assert skipped(printed) <= expected
    assert skipped(printed + alone) == expected | {STUBS}  # which are for torch alone


def test_a_package_for_a_torch_backend_uses_the_backends_own_events(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="these checks run on torch")
    made = make(tmp_path, "my-npu", "--variant", "torch", "--torch-device", "openreg")
    openreg = "import sys, torch; sys.exit(not hasattr(torch, 'openreg'))"
    if subprocess.run([sys.executable, "-c", openreg], check=False, timeout=120).returncode:
        pytest.skip("needs the simulated device")
    printed, counts = made.tests("-k", "on_torch or c8")
    assert counts["passed"] >= 30, printed
    events = """
import torch, my_npu.device as fake
fake.now_ticks = None  # whoever asks the fake for events now fails
with torch.autograd.profiler.profile(use_device="openreg") as prof:
    torch.ones(512, 512, device="openreg") @ torch.ones(512, 512, device="openreg")
from devprof.registry import discover
(stubs,) = [one.stubs for one in discover().stubs if one.plugin.name == "my-npu"]
print("own events:", type(stubs).__name__, stubs.elapsed(stubs.record(), stubs.record()) >= 0)
"""
    assert "own events: TorchEvents True" in made.run("-c", events)


def test_the_demo_prints_kernels_and_a_clean_account_and_writes_a_trace(fresh: Made) -> None:
    if fresh.folder.name == "torch-npu":
        pytest.importorskip("torch", reason="this demo runs on torch")
    name = fresh.folder.name
    if name == "c-npu":
        fresh.run("-m", "devprof", "build", "c_npu")
    printed = fresh.run("demo.py", DEVPROF_OPENREG="0")
    assert re.search(
        rf"{name}: produced (\d) = emitted \1 \+ dropped 0 \+ rejected 0; (\d) of \2 device records linked", printed
    )
    assert {"gemm", "relu"} - set(re.findall(r"\w+", printed)) == set()
    assert (fresh.folder / f"{name}.trace.json").stat().st_size > 0


def test_a_fresh_package_is_listed_by_devprof_plugins(fresh: Made) -> None:
    name = fresh.folder.name
    listed = json.loads(fresh.run("-m", "devprof", "plugins", "--json"))["plugins"]
    (found,) = (one for one in listed if one["name"] == name)
    assert (found["version"], found["torch_device"]) == ("0.1.0", name.replace("-", "_"))


def test_the_conformance_command_finds_how_to_make_the_device_work(plain: Made) -> None:
    said = plain.run("-m", "devprof", "conform", "my-npu", "--host", "python", "--only", "C401")
    assert said.splitlines()[-1] == "my-npu: 1 of 1 checks hold"


def test_an_sdk_that_is_not_built_is_one_warning_that_says_how_to_build_it(tmp_path: Path) -> None:
    made = make(tmp_path, "my-npu", "--variant", "c")
    program = "import devprof\nwith devprof.profile(activities=['cpu', 'my-npu'], host='python'): pass\n"
    said = made.run("-c", program, DEVPROF_CACHE=str(tmp_path / "cache"))
    (warned,) = re.findall(r"PluginWarning: (.*)", said)
    assert "'my_npu' has not been built for this environment; run `devprof build my_npu`" in warned
    assert "Traceback" not in said


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_fake_sdk_is_plain_c_without_a_warning_and_c_plus_plus_too(tmp_path: Path, language: str) -> None:
    if (compiler := shutil.which("gcc")) is None:
        pytest.skip("gcc is not installed")
    source = tmp_path / "runtime.c"
    for name in ("runtime.c", "runtime.h"):
        (tmp_path / name).write_text(files_of(Names.of("my-npu"), "c")[f"src/my_npu/csrc/{name}"])
    standard = "gnu11" if language == "c" else "c++20"
    words = [compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*words, "-I", include_dir(), source], check=True, timeout=60)


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


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy knows of torch, which takes it most of its time."""
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_written_passes_mypy_strict(tmp_path: Path, mypy_cache: Path, variant: str) -> None:
    pytest.importorskip("mypy", reason="the type checker is one of the project's own tools")
    pytest.importorskip("torch", reason="without torch its names would be unknown to mypy")
    run("-m", "devprof", "new", "my-npu", "--variant", variant, cwd=tmp_path)
    words = ["-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", mypy_cache, "src", "tests"]
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
