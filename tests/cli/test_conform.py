"""`devprof conform`: a report, JSON, and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.cli.command import devprof

ZOO = Path(__file__).parents[1] / "conformance"


def conform(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ZOO), *filter(None, [os.environ.get("PYTHONPATH")])])
    return devprof("conform", *words, PYTHONPATH=path, **environment)


def test_a_plugin_that_keeps_its_promises_has_exit_code_0() -> None:
    done = conform("cli_toy:right", "--workload", "cli_toy:Workload", "--host", "python", "--only", "C3")
    assert done.returncode == 0, done.stdout + done.stderr
    first, skipped, last = done.stdout.splitlines()
    assert (first, last) == ("Correlation: 6 of 6", "cli_toy:right: 6 of 6 checks hold, 1 skipped")
    assert skipped.startswith(
        "  C307 A pop without a push does nothing. Skipped: needs a plugin that is told of each op"
    )


def test_a_broken_promise_is_told_as_json_with_exit_code_1() -> None:
    done = conform("cli_toy:broken", "--workload", "cli_toy:Workload", "--host", "python", "--only", "c407", "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    (finding,) = report["findings"]
    assert (finding["number"], finding["state"], finding["found"]) == ("C407", "failed", "[0]")
    assert finding["cause"].startswith("`thread_id` is 0")
    assert report["counts"] == {"held": 0, "failed": 1, "skipped": 0, "undecided": 0}


def test_a_plugin_in_a_fresh_interpreter_is_caught_with_what_it_left_running() -> None:
    done = conform("zoo:imported", "--host", "python", "--only", "C103")
    assert done.returncode == 1
    assert "found: {'threads': ['toy poller']}" in done.stdout


def test_without_a_workload_the_report_says_how_to_give_one() -> None:
    done = conform("cli_toy:right", "--host", "python", "--only", "C401")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == (
        "cli_toy:right has no workload: give one with --workload, or an entry point of group devprof.workloads"
    )


def test_wrong_use_is_exit_code_2_with_what_is_expected() -> None:
    for words, says in (
        (["no such plugin"], "no profiler named 'no such plugin'"),
        (["cli_toy:right", "--only", "C777"], "there is no check C777"),
        (["cli_toy:right", "--workload", "cli_toy:Nothing"], "expected 'module:attribute'"),
        (["cli_toy:right", "--host", "torch"], "the plugin serves no torch device"),
    ):
        done = conform(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert says in done.stderr
