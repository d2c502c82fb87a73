"""The command line: exit codes, and that what it says is true. Each command runs as a user runs it, in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import devprof

PLUGIN_THAT_FAILS = """
raise OSError("libvendor.so.3: cannot open shared object file")
"""


PLUGIN_WHOSE_BUILDS_FAIL = """
from devprof.contract import hookimpl

@hookimpl
def devprof_native_builds():
    raise RuntimeError("vendor.h is not where it was")
"""


PLUGIN_WITH_A_DEVICE_TO_TELL_OF = """
from devprof.contract import hookimpl

@hookimpl
def devprof_doctor_lines():
    return ["driver: 7.1", "firmware: too old; run vendor-update"]
"""


def installed_plugin(folder: Path, source: str) -> str:
    """Write a plugin's module and its entry point into a folder; return the folder for PYTHONPATH."""
    (folder / "vendor_plugin.py").write_text(source)
    info = folder / "vendor_plugin-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-plugin\nVersion: 1.2.3\n")
    (info / "entry_points.txt").write_text("[devprof.plugins]\nvendor = vendor_plugin\n")
    return str(folder)


def test_without_words_the_commands_are_listed() -> None:
    """A newcomer who types the bare command sees what there is."""
    done = devprof()
    assert all(word in done.stdout for word in ("build", "demo", "doctor", "plugins"))


def test_building_something_unknown_is_wrong_use_and_lists_what_there_is() -> None:
    """Exit code 2, one line, no traceback."""
    done = devprof("build", "brigde")
    assert done.returncode == 2
    assert "nothing is called brigde" in done.stderr
    assert "bridge" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plugin_that_fails_to_say_what_it_builds_is_named_with_exit_code_1(tmp_path: Path) -> None:
    """The rest is built or left out with its reason; what failed is not passed over."""
    path = installed_plugin(tmp_path, PLUGIN_WHOSE_BUILDS_FAIL)
    cache = tmp_path / "cache"
    done = devprof(
        "build", PYTHONPATH=path, PYTHONWARNINGS="ignore", DEVPROF_CACHE=str(cache), CXX="no-such-compiler", PATH=""
    )
    assert done.returncode == 1
    assert "ranges: left out, " in done.stdout
    assert "plugin vendor: FAILED in devprof_native_builds" in done.stderr
    assert "vendor.h is not where it was" in done.stderr


def test_doctor_passes_on_what_a_plugin_says_of_its_device(tmp_path: Path) -> None:
    """In words and as JSON, under the plugin's name."""
    environment = {
        "PYTHONPATH": installed_plugin(tmp_path, PLUGIN_WITH_A_DEVICE_TO_TELL_OF),
        "DEVPROF_CACHE": str(tmp_path),
    }
    done = devprof("doctor", **environment)
    assert "  vendor: driver: 7.1\n  vendor: firmware: too old; run vendor-update\n" in done.stdout
    said = json.loads(devprof("doctor", "--json", **environment).stdout)
    assert said["plugins"]["vendor"]["lines"] == ["driver: 7.1", "firmware: too old; run vendor-update"]


def test_doctor_names_versions_cache_and_switches(tmp_path: Path) -> None:
    """What a bug report needs is on the screen."""
    done = devprof("doctor", DEVPROF_CACHE=str(tmp_path), DEVPROF_BUILD="never")
    assert f"cache: {tmp_path}" in done.stdout
    assert "'DEVPROF_BUILD': 'never'" in done.stdout
    assert "library bridge: not built" in done.stdout


def test_a_plugin_that_cannot_be_imported_is_listed_with_its_cause(tmp_path: Path) -> None:
    """The cause is shown, the exit code says that something is wrong, and the other plugins are still there."""
    path = installed_plugin(tmp_path, PLUGIN_THAT_FAILS)
    done = devprof("plugins", "-v", PYTHONPATH=path, PYTHONWARNINGS="ignore")
    assert done.returncode == 1
    assert "libvendor.so.3: cannot open shared object file" in done.stdout
    assert "vendor" in done.stdout


def test_a_blocked_plugin_is_not_imported(tmp_path: Path) -> None:
    """Blocking is by name, before the plugin's code runs."""
    path = installed_plugin(tmp_path, PLUGIN_THAT_FAILS)
    done = devprof("plugins", PYTHONPATH=path, DEVPROF_BLOCK_PLUGINS="vendor")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_demo_checks_its_own_trace_and_says_where_it_is(tmp_path: Path) -> None:
    """The main job on the simulated device: table, ledger, checks, file."""
    pytest.importorskip("torch", reason="the demo profiles a torch program")
    trace = tmp_path / "demo.json"
    done = devprof("demo", "--output", str(trace))
    assert done.returncode == 0, done.stderr
    assert "FAIL" not in done.stdout
    assert done.stdout.count("  ok   ") == 6
    assert "Self OPENREG time total" in done.stdout
    assert str(trace) in done.stdout
    ledger = json.loads(trace.read_text())["devprof"]["plugins"]["openreg"]
    assert ledger["produced"] == ledger["emitted"] > 0
