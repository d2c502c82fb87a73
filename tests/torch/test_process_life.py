"""From `import torch` to the process's exit: what devprof does unasked, across a fork, without its bridge, and for how long."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from toyland import Join, Program, Runtime, profile

import devprof
import devprof.torch
from devprof.contract import CorrelationAccess
from devprof.torch import autoload
from devprof.torch.bridge import bridge


def test_import_torch_installs_the_wrap_and_loads_nothing_else(program: Program) -> None:
    facts = program(
        """
        import sys
        import torch
        rooms = sorted(name for name in sys.modules if name.startswith("devprof.") and name.count(".") == 1)
        import json
        from devprof.torch import installed
        print(json.dumps({"installed": installed(), "rooms": rooms, "pluggy": "pluggy" in sys.modules}))
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert facts["installed"]
    assert "devprof.torch" in facts["rooms"]
    assert not {"devprof.registry", "devprof.capture", "devprof.link", "devprof.pipeline"} & set(facts["rooms"])


@pytest.mark.parametrize("failing", [RuntimeError("broken"), ImportError("broken"), AttributeError("broken")])
def test_the_entry_point_never_breaks_import_torch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failing: Exception
) -> None:
    def install() -> None:
        raise failing

    monkeypatch.setattr("devprof.torch.interpose.install", install)
    with caplog.at_level(logging.WARNING):
        autoload.arm()
    assert "could not wrap torch.profiler" in caplog.text
    assert "broken" in caplog.text


def test_a_child_process_made_by_fork_after_a_session_can_profile_and_so_can_its_parent(program: Program) -> None:
    facts = program(
        """
        import json, os, pathlib, warnings
        import toyland, torch, devprof
        warnings.simplefilter("ignore", DeprecationWarning)

        runtime = toyland.Runtime()
        plugin = toyland.scripted(script=runtime.script)

        def session():
            with toyland.profile() as prof:
                toyland.run_in_op(runtime.launch)
            owners = [event.name for event in prof.events() if event.kernels]
            (launch,) = toyland.slices(toyland.exported(prof, pathlib.Path(".")), "privateuse1_runtime")
            return owners, devprof.report_of(prof).ledgers[plugin.label].emitted, launch["pid"] == os.getpid()

        with toyland.alone(plugin):
            first = session()
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                with os.fdopen(writer, "w") as out:
                    json.dump([session(), session()], out)
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as into:
                in_child = json.load(into)
            _, status = os.waitpid(child, 0)
            toyland.say(first=first, in_child=in_child, status=status, after=session())
        """
    )
    expected = [["toy::run"], 2, True]
    assert facts["status"] == 0
    assert [facts["first"], *facts["in_child"], facts["after"]] == [expected] * 4


@pytest.mark.parametrize("stubs", [False, True], ids=["kineto", "legacy"])
def test_a_process_that_profiled_exits_with_0_and_says_nothing(program: Program, stubs: bool) -> None:
    facts = program(
        f"""
        import toyland, torch, devprof
        from devprof.contract import CorrelationAccess

        runtime = toyland.Runtime()
        plugin = toyland.scripted(script=runtime.script, correlation=CorrelationAccess.PYTHON)
        toyland.backend()
        devprof.torch.install()
        toyland.block_installed_plugins()
        toyland.take_in(plugin)
        toyland.take_in(stubs=toyland.Stubs())
        if {stubs}:
            with torch.autograd.profiler.profile(use_device=toyland.backend()) as prof:
                torch.ones(3).neg()
        else:
            with toyland.profile() as prof:
                toyland.run_in_op(runtime.launch)
        toyland.say(events=len(prof.events() if not {stubs} else prof.function_events))
        # the profile, its result and the plugin all live on into the interpreter's end
        """
    )
    assert facts["events"] > 0
    complaints = [line for line in facts["stderr"].splitlines() if "USDT" not in line]
    assert complaints == []


def test_a_process_that_exits_while_it_profiles_ends_and_calls_no_hook_any_more(program: Program) -> None:
    """torch itself may crash then, with or without a plugin; devprof must not add a hang or a call into a dead interpreter."""
    facts = program(
        """
        import atexit, os
        import toyland, torch, devprof
        from devprof.contract import CorrelationAccess

        plugin = toyland.scripted(correlation=CorrelationAccess.PYTHON)
        toyland.backend()
        devprof.torch.install()
        toyland.block_installed_plugins()
        toyland.take_in(plugin)
        prof = toyland.profile()
        # runs after devprof's own exit handler, which the first session registers
        atexit.register(lambda: toyland.say(calls=plugin.sessions[0].calls, pushed=len(plugin.pushed)))
        prof.start()
        torch.ones(3).neg()
        """,
        exit_code=None,
    )
    assert facts["calls"] == ["start"]
    assert facts["pushed"] == 8
    assert "devprof" not in facts["stderr"]


def test_without_its_bridge_or_with_another_torchs_devprof_says_so_once_and_the_profile_is_fine(
    program: Program, tmp_path: Path
) -> None:
    facts = program(
        """
        import hashlib, pathlib, subprocess, warnings
        import toyland, torch, devprof
        from devprof.errors import DevprofWarning
        from devprof.native import library_path
        from devprof.native.facts import compiler
        from devprof.torch.bridge_build import BRIDGE

        plugin = toyland.scripted(torch_device=None)

        def session():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with toyland.profile() as prof:
                    torch.ones(3).neg()
            told = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
            return told, "aten::neg" in toyland.ops_of(prof), len(plugin.sessions)

        with toyland.alone(plugin):
            absent = session()
            path = library_path(BRIDGE)
            source = pathlib.Path("fake.c")
            source.write_text('const char* devprof_build_info(void) { return "bridge for torch 1.0"; }')
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(b"no library")
            path.chmod(0o700)
            path.with_suffix(".sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
            damaged = session()
            subprocess.run([*compiler(), "-x", "c", "-shared", "-fPIC", str(source), "-o", str(path)], check=True)
            path.chmod(0o700)
            path.with_suffix(".sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
            foreign = session()
            path.chmod(0o722)
            exposed = session()
        toyland.say(absent=absent, foreign=foreign, damaged=damaged, exposed=exposed)
        """,
        DEVPROF_BUILD="never",
        DEVPROF_CACHE=str(tmp_path / "cache"),
    )
    reasons = {
        "absent": "run `devprof build bridge`",
        "foreign": "was built for [bridge for torch 1.0], this process runs [bridge | torch",
        "damaged": "cannot be loaded",
        "exposed": "no write access for others",
    }
    for case, reason in reasons.items():
        told, whole, n_sessions = facts[case]
        assert len(told) == 1, case
        assert "devprof takes no part in this profile" in told[0]
        assert reason in told[0]
        assert whole
        assert n_sessions == 0


def n_native_threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
@pytest.mark.parametrize("access", [CorrelationAccess.READ, CorrelationAccess.PYTHON])
def test_two_hundred_sessions_leave_nothing_behind(join: Join, access: CorrelationAccess) -> None:
    runtime = Runtime()
    plugin = join(script=runtime.script, correlation=access)

    def session() -> Any:
        with profile() as prof:
            toyland.run_in_op(runtime.launch)
        return devprof.report_of(prof)

    session()
    before = (threading.active_count(), n_native_threads())
    emitted = 0
    for _ in range(200):
        emitted += session().ledgers[plugin.label].emitted
        plugin.sessions.clear()
    assert emitted == 400
    # a thread that was joined may still be on its way out of the kernel
    deadline = time.monotonic() + 10
    while n_native_threads() > before[1] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before[0]
    assert n_native_threads() <= before[1]
    generation = bridge().lib.devprof_capture_new()
    bridge().lib.devprof_capture_drop(generation)
    assert generation >= 200
    assert all(bridge().replayed(older) is None for older in range(generation))


def test_the_working_directory_and_environment_are_left_as_they_were(join: Join) -> None:
    before = Path.cwd(), dict(os.environ)
    join()
    with profile():
        torch.ones(2) + 1
    assert (Path.cwd(), dict(os.environ)) == before
