"""The tutorial's folder is what `devprof new` writes but for what the page replaces, and does what the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devprof.scaffold import Names, files_of

pytest.importorskip("torch", reason="the tutorial ends under torch")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorial.md"
FINISHED = ROOT / "examples/tutorial/my-npu"
REPLACED = {"src/my_npu/device.py", "src/my_npu/workload.py"}
ADDED = {"demo_torch.py", "src/npu_sdk/__init__.py"}
OUTPUT = re.compile(r"<!-- output: (.+?) -->\n```\n(.*?)```\n", re.DOTALL)
LEFT_BY_TOOLS = re.compile(r"(^|/)(\.\w+_cache|__pycache__|build|[\w.-]+\.egg-info)/|\.trace\.json$")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def run(*words: str | Path, folder: Path, expected: int = 0, errors: bool = False) -> str:
    """Run Python in a package's folder, against its own sources; return what it printed."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        # without the simulated device, as the page says; a failing part of a profile is silent on stderr
        env={
            **os.environ,
            "DEVPROF_OPENREG": "0",
            "PYTHONPATH": str(folder.parent / "site"),
            "PYTHONWARNINGS": "default",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stderr if errors else done.stdout


def install(folder: Path) -> Path:
    """Install a package beside its folder, as its author would, without a network."""
    pip = ["-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--upgrade"]
    quiet = ["--disable-pip-version-check", "--root-user-action=ignore"]
    run(*pip, *quiet, "--target", folder.parent / "site", folder, folder=folder)
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the finished folder, installed."""
    folder = tmp_path_factory.mktemp("tutorial") / "my-npu"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "*.trace.json")
    shutil.copytree(FINISHED, folder, ignore=ignored)
    return install(folder)


@pytest.fixture(scope="session")
def broken(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished folder with the page's mistake in it."""
    folder = tmp_path_factory.mktemp("broken") / "my-npu"
    shutil.copytree(finished, folder)
    session = folder / "src/my_npu/session.py"
    right = session.read_text(encoding="utf-8")
    session.write_text(right.replace("linked=record.op_id", "linked=record.number"), encoding="utf-8")
    assert session.read_text(encoding="utf-8") != right
    shutil.rmtree(folder / "build", ignore_errors=True)
    return install(folder)


def shows(name: str, printed: str) -> None:
    """Assert that the page shows this output, but for its numbers; written anew by `make snapshot`."""
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("RENEW_SNAPSHOTS"):
        block = re.compile(rf"(<!-- output: {re.escape(name)} -->\n```\n).*?(```\n)", re.DOTALL)
        page = block.sub(lambda found: found.group(1) + printed + found.group(2), page)
        PAGE.write_text(page, encoding="utf-8")
    assert NUMBER.sub("N", dict(OUTPUT.findall(page))[name]) == NUMBER.sub("N", printed), (
        "meant to change? `make snapshot`"
    )


def test_the_folder_is_what_devprof_new_writes_but_for_what_the_page_replaces() -> None:
    written = files_of(Names.of("my-npu"))
    if os.environ.get("RENEW_SNAPSHOTS"):
        for path in written.keys() - REPLACED:
            (FINISHED / path).write_text(written[path], encoding="utf-8")
    found = {str(path.relative_to(FINISHED)): path for path in FINISHED.rglob("*") if path.is_file()}
    made_by_tools = {path for path in found if LEFT_BY_TOOLS.search(path)}
    assert set(found) - made_by_tools - ADDED == set(written)
    texts = {path: found[path].read_text(encoding="utf-8") for path in written}
    assert {path for path, text in written.items() if texts[path] != text} == REPLACED, (
        "`make snapshot` renews the others"
    )


def test_the_first_step_prints_what_the_page_shows(tmp_path: Path) -> None:
    shows("devprof new my-npu", "$ devprof new my-npu\n" + run("-m", "devprof", "new", "my-npu", folder=tmp_path))
    shows("python demo.py, fake", "$ python demo.py\n" + run("demo.py", folder=install(tmp_path / "my-npu")))


def test_the_finished_plugin_passes_the_conformance_kit_on_both_hosts(finished: Path) -> None:
    last = run("-m", "pytest", "-p", "no:cacheprovider", folder=finished).splitlines()[-1].strip("= ")
    shows("pytest", f"$ python -m pytest -q | tail -1\n{last}\n")
    passed, skipped = map(int, re.findall(r"(\d+) (?:passed|skipped)", last))
    assert passed > 4 * skipped


def test_the_demo_without_torch_prints_what_the_page_shows(finished: Path) -> None:
    shows("python demo.py", "$ python demo.py\n" + run("demo.py", folder=finished))


def test_the_demo_under_torch_prints_what_the_page_shows(finished: Path) -> None:
    shows("python demo_torch.py", "$ python demo_torch.py\n" + run("demo_torch.py", folder=finished))


def test_the_mistake_is_warned_of_at_the_end_of_an_ordinary_profile(broken: Path) -> None:
    said = run("demo.py", folder=broken, errors=True)
    (warned,) = re.findall(r"LossWarning: (.*)\n", said)
    shows("python demo.py, broken", f"LossWarning: {warned}\n")


def test_the_mistake_is_named_by_the_conformance_kit(broken: Path) -> None:
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-k", "c402 and not torch"]
    printed = run(*words, folder=broken, expected=1)
    (finding,) = re.findall(r"^C402 .*?--explain C402\n", printed, re.DOTALL | re.MULTILINE)
    shows("pytest -k c402, broken", finding)
