"""The README's programs are the examples, its output is theirs, and they run as a user would run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from openreg_sim.runtime.faults import FaultRule

pytest.importorskip("torch", reason="these tests run on torch")

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs/profiling.md", ROOT / "docs/tutorial.md")
EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"<!-- (code|output): (.+?) -->\n```\w*\n(.*?)```\n", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def _blocks(kind: str, page: Path = README) -> Iterator[tuple[str, str]]:
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if found.group(1) == kind:
            yield found.group(2), found.group(3)


def _python(*command: str | Path, cwd: Path, **env: str) -> str:
    words = [sys.executable, *map(str, command)]
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _renew(kind: str, name: str, text: str, page: Path = README) -> None:
    if os.environ.get("RENEW_SNAPSHOTS"):
        pattern = re.compile(rf"(<!-- {kind}: {re.escape(name)} -->\n```\w*\n).*?(```\n)", re.DOTALL)
        renewed = pattern.sub(lambda found: found.group(1) + text + found.group(2), page.read_text(encoding="utf-8"))
        page.write_text(renewed, encoding="utf-8")


def _shape(output: str) -> list[list[str]]:
    """Words of each line, numbers blanked out: what stays the same from run to run."""
    return [NUMBER.sub("N", line).split() for line in output.splitlines()]


@pytest.fixture(scope="session")
def kernel_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which examples/kernel_trace.py ran."""
    folder = tmp_path_factory.mktemp("kernel_trace")
    _python(EXAMPLES / "kernel_trace.py", cwd=folder)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_programs_on_a_page_are_the_examples(page: Path) -> None:
    names = [name for name, _ in _blocks("code", page)]
    for name in names:
        _renew("code", name, (ROOT / name).read_text(encoding="utf-8"), page)
    assert dict(_blocks("code", page)) == {name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    assert names


def test_the_output_in_the_readme_is_what_comes_out_but_for_the_numbers(kernel_trace: Path) -> None:
    ((command, _),) = _blocks("output")
    script, *arguments = command.split()
    printed = _python(ROOT / script, *arguments, cwd=kernel_trace)
    _renew("output", command, printed)
    ((_, shown),) = _blocks("output")
    assert _shape(shown) == _shape(printed), "meant to change? `make snapshot`"


def test_the_legacy_profiler_prints_its_table_and_writes_its_trace(tmp_path: Path) -> None:
    printed = _python(EXAMPLES / "legacy_profiler.py", cwd=tmp_path)
    assert {"matmul", "aten::mm", "aten::matmul"} - set(printed.split()) == set()
    assert [path.name for path in tmp_path.iterdir()] == ["openreg_trace.json"]


def test_a_program_without_torch_prints_its_table_and_its_account_and_writes_its_trace(tmp_path: Path) -> None:
    script = "import runpy, sys; sys.modules['torch'] = None; runpy.run_path(sys.argv[1])"
    printed = _python("-c", script, EXAMPLES / "without_torch.py", cwd=tmp_path)
    assert {"matmul_kernel", "relu_kernel", "matmul_grad_kernel", "forward", "backward"} - set(printed.split()) == set()
    assert "openreg: produced 7 = emitted 7 + dropped 0 + rejected 0; 3 of 3 device records linked" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["without_torch.json.gz"]


def _use_installed(name: str, module: str, folder: Path) -> str:
    """Install an example's plugin as a user would, and return what the program beside it prints."""
    source, site, copy = EXAMPLES / name, folder / "site", folder / "source"
    copy.mkdir()
    for part in ("pyproject.toml", f"{module}.py"):  # a copy: an installation leaves files beside its source
        (copy / part).write_text((source / part).read_text(encoding="utf-8"), encoding="utf-8")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    _python("-m", "pip", "install", *options, "--target", site, copy, cwd=folder)
    return _python(source / f"use_{module}.py", cwd=folder, PYTHONPATH=str(site))


def test_the_minimal_plugin_is_found_once_installed_and_its_kernels_belong_to_their_op(tmp_path: Path) -> None:
    printed = _use_installed("minimal_plugin", "toy", tmp_path)
    assert re.search(r"toy: produced 4 = emitted 4 \+ dropped 0 \+ rejected 0; 2 of 2 device records linked", printed)
    (kernel,) = (line for line in printed.splitlines() if line.split()[:1] == ["double_kernel"])
    assert "100.000us" in kernel


def test_the_clocked_plugin_has_host_calls_and_ticks_on_one_timeline_and_its_loss_in_the_report(tmp_path: Path) -> None:
    printed = _use_installed("clocked_plugin", "ticker", tmp_path)
    assert (
        "ticker: produced 10 = emitted 9 + dropped 1 + rejected 0; 4 of 4 device records linked\n"
        "  dropped, record buffer full: 1\n"
    ) in printed
    trace = json.loads((tmp_path / "ticker.trace.json").read_text(encoding="utf-8"))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    calls = {e["args"]["correlation"]: e for e in events if e["name"] == "tickLaunch"}
    work = [e for e in events if e["cat"] in ("kernel", "gpu_memcpy")]
    # 100: beside the simulated device, whose devices come first
    assert [(e["cat"], e["pid"], e["tid"], round(e["dur"]), e["args"].get("bytes")) for e in work] == [
        ("gpu_memcpy", 100, 1, 10, 16),
        ("kernel", 100, 0, 50, None),
    ] * 2
    assert len(calls) == 5
    # the clock is known to a few us; without its conversion these would be days apart
    assert all(abs(e["ts"] - calls[e["args"]["correlation"]]["ts"]) < 100_000 for e in work)
    assert {"id": 100, "name": "ticker 0", "clock MHz": 100} in trace["deviceProperties"]


def test_the_wrapping_plugin_knows_the_ranges_of_calls_whose_sdk_knows_of_none(tmp_path: Path) -> None:
    printed = _use_installed("wrapping_plugin", "wrapper", tmp_path)
    *work, account = printed.splitlines()
    assert sorted(work) == [
        "copy for load, on queue 1",
        "copy for load, on queue 1",
        "gemm for forward, on queue 0",
        "relu for forward, on queue 0",
    ]
    assert account == "wrapper: produced 8 = emitted 8 + dropped 0 + rejected 0; 4 of 4 device records linked"


def test_the_program_that_shows_a_trace_says_what_it_needs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "show_trace.py"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "usage: python show_trace.py TRACE.json OP\n")


def test_the_readme_of_the_simulated_device_runs(tmp_path: Path) -> None:
    page = (ROOT / "plugins/openreg_sim/README.md").read_text(encoding="utf-8")
    program, faults = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert _python("-c", program, cwd=tmp_path).startswith("[")
    assert _python("-c", faults, cwd=tmp_path) == ""
    assert set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)) == {kind.__name__ for kind in get_args(FaultRule)}
