"""`devprof.profile` on the simulated runtime in a process where torch cannot be imported: faults, hostile plugins, exits."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

BEFORE = """
    import sys
    sys.modules["torch"] = None  # as on a machine without torch
    import devprof, free_work
    from devprof.errors import SessionError, UsageError
    from openreg_sim.runtime import Runtime, RuntimeConfig, runtime

"""


@pytest.fixture
def free(said: Any) -> Any:
    """Run the text of a program without torch; return the facts that it says."""
    return lambda text, **environment: said(textwrap.dedent(BEFORE) + textwrap.dedent(text), **environment)


@pytest.fixture
def ends(fresh: Any, tmp_path: Path) -> Any:
    """Run the text of a program without torch; return what became of it."""

    def run(text: str, **options: Any) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(BEFORE) + textwrap.dedent(text), encoding="utf-8")
        return fresh(path, folder=tmp_path, **options)  # type: ignore[no-any-return]

    return run


# -- results -----------------------------------------------------------------------------------------------------------


def test_the_whole_of_it_works_without_torch(free: Any) -> None:
    facts = free(
        """
        import json
        side = runtime().create_stream(0)
        with devprof.profile(record_shapes=True) as prof:
            with devprof.record_function("forward"):
                runtime().launch("scale", flops=1e6)
                event = runtime().event_create()
                runtime().event_record(event, 0, 0)
                runtime().stream_wait_event(event, 0, side)
                runtime().launch("shift", flops=1e6, stream=side)
            with devprof.record_function("elsewhere"):
                runtime().launch("scale", device=1, flops=1e6)
        prof.export_chrome_trace("trace.json")
        prof.export_chrome_trace("trace.json.gz")
        table = prof.table(sort_by="cpu_time_total")
        rows = {row.key: [row.count, row.device_time_total > 0] for row in prof.key_averages()}
        file = json.load(open("trace.json"))
        trace = prof.trace
        free_work.say(
            host=trace.facts["host"],
            rows=rows,
            forward="forward" in table,
            streams=sorted({(e["pid"], e["tid"]) for e in file["traceEvents"] if e.get("cat") == "kernel"}),
            arrows=sum(e.get("cat") == "ac2g" and e["ph"] == "s" for e in file["traceEvents"]),
            clean=prof.report.clean,
            same=devprof.report_of(prof) is devprof.last_report() is prof.report,
            stats=[prof.stats.number_of_events == len(trace), prof.stats.window_ns > 0, prof.stats.disable_ns > 0],
            torch=[name for name in sys.modules if name.startswith("torch.")],
        )
        """,
        DEVPROF_OPENREG_CLOCK="virtual",
    )
    rows = facts.pop("rows")
    assert {key: rows[key] for key in ("forward", "elsewhere", "scale", "shift")} == {
        "forward": [1, True],
        "elsewhere": [1, True],
        "scale": [2, True],
        "shift": [1, True],
    }
    streams = facts.pop("streams")
    assert len(streams) == 3
    assert facts == {
        "host": "python",
        "forward": True,
        "arrows": 3,
        "clean": True,
        "same": True,
        "stats": [True, True, True],
        "torch": [],
    }


def test_a_schedule_writes_one_file_for_each_cycle_and_work_knows_its_step(free: Any) -> None:
    facts = free(
        """
        import os
        steps, handler = [], devprof.tensorboard_trace_handler("traces", "worker")
        def ready(prof):
            handler(prof)
            steps.append([[one.op, one.user] for one in free_work.told(prof.trace)])
        plan = devprof.schedule(wait=1, warmup=1, active=2, repeat=2)
        with devprof.profile(schedule=plan, on_trace_ready=ready, acc_events=True) as prof:
            for number in range(10):
                runtime().launch("scale", flops=1e6)
                prof.step()
        free_work.say(
            steps=steps,
            files=len(os.listdir("traces")),
            launches=sum(event.name == "scale" for event in prof.events()),
            parts=len({int(one) for one in prof.trace.id[free_work.work_of(prof.trace)]}),
        )
        """
    )
    named = [[f"ProfilerStep#{step}"] * 2 for step in (2, 3, 6, 7)]
    assert facts == {"steps": [named[:2], named[2:]], "files": 2, "launches": 4, "parts": 2}


def test_work_of_pools_and_of_tasks_that_take_turns_belongs_to_the_right_range(free: Any) -> None:
    facts = free(
        """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        async def task(number):
            with devprof.record_function(f"task {number}"):
                await asyncio.sleep(0)
                runtime().launch(f"of task {number}")
                await asyncio.sleep(0)

        async def tasks():
            await asyncio.gather(*(task(number) for number in range(3)))

        with devprof.profile() as prof:
            with devprof.record_function("pool"), ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda _: runtime().launch("of the pool"), range(2)))
            asyncio.run(tasks())
        free_work.say(work=sorted([one.name, one.op, one.user] for one in free_work.told(prof.trace)))
        """
    )
    assert facts["work"] == [
        *[[f"of task {number}", f"task {number}", f"task {number}"] for number in range(3)],
        *[["of the pool", "pool", "pool"]] * 2,
    ]


def test_memory_of_the_device_is_in_the_trace_with_its_range(free: Any) -> None:
    facts = free(
        """
        with devprof.profile(profile_memory=True) as prof:
            with devprof.record_function("load"):
                address = runtime().allocate(4096, device=1)
            runtime().free(address)
        names = free_work.names_by_id(prof.trace)
        events = prof.trace.named("[memory]")
        keys = ("Device", "Bytes", "Total Allocated")
        free_work.say(memory=[
            [prof.trace.item(key, int(event)) for key in keys] + [names.get(int(prof.trace.linked[event]))] for event in events
        ])
        """
    )
    assert facts["memory"] == [["openreg:1", 4096, 4096, "load"], ["openreg:1", -4096, 0, None]]


def test_activities_choose_what_is_recorded(free: Any) -> None:
    facts = free(
        """
        def kinds(activities):
            with devprof.profile(activities=activities) as prof:
                with devprof.record_function("range"):
                    runtime().launch("scale")
                    runtime().memset(10)
            return sorted({event.name for event in prof.events()})
        A = devprof.ProfilerActivity
        from devprof.errors import UsageError
        try:
            devprof.profile(activities=["cpu", "npu"])
        except UsageError as error:
            refused = str(error)
        free_work.say(
            cpu=kinds(["cpu"]), both=kinds([A.CPU, A.PrivateUse1]) == kinds(["cpu", "openreg"]) == kinds(None),
            device=kinds(["openreg"]), some=kinds([{"openreg": ["GPU_MEMSET"]}]), refused=refused,
        )
        """
    )
    refused = facts.pop("refused")
    assert "no plugin records 'npu'" in refused
    assert "'openreg'" in refused
    assert facts == {
        "cpu": ["range"],
        "both": True,
        "device": ["Memset (Device)", "orLaunchKernel", "orMemsetAsync", "scale"],
        "some": ["Memset (Device)"],
    }


def test_a_toggle_pauses_the_host_or_the_device(free: Any) -> None:
    facts = free(
        """
        with devprof.profile() as prof:
            for name, off in (("both", []), ("no host", ["cpu"]), ("no device", ["openreg"]), ("both again", [])):
                prof.toggle_collection_dynamic(False, off)
                with devprof.record_function(name):
                    runtime().launch(f"kernel: {name}")
                prof.toggle_collection_dynamic(True, off)
        kernels = [prof.trace.name_of(event) for event in free_work.work_of(prof.trace)]
        free_work.say(ranges=list(free_work.names_by_id(prof.trace).values()), kernels=kernels)
        """
    )
    assert facts == {
        "ranges": ["both", "no device", "both again"],
        "kernels": ["kernel: both", "kernel: no host", "kernel: both again"],
    }


# -- faults and hostile plugins ----------------------------------------------------------------------------------------


def test_what_the_device_loses_is_counted_and_said_once(free: Any) -> None:
    facts = free(
        """
        from openreg_sim.runtime import DropRecords
        program = free_work.Program(runtime())
        runtime().inject(DropRecords(every=3))
        session = free_work.record(runtime(), lambda: program.run([free_work.Step("kernel", 0, 0)] * 9))
        runtime().clear_faults()
        after = free_work.record(runtime(), lambda: program.run([free_work.Step("kernel", 0, 0)] * 9))
        free_work.say(
            dropped=sum(session.ledger.dropped.values()) > 0, clean=session.prof.report.clean, warned=len(session.warned),
            words=session.warned[0], after=[after.prof.report.clean, after.warned],
        )
        """
    )
    words = facts.pop("words")
    assert "openreg" in words
    assert "no activity buffer" in words
    assert facts == {"dropped": True, "clean": False, "warned": 1, "after": [True, []]}


def test_a_call_that_fails_reaches_the_user_and_the_trace_has_the_rest(free: Any) -> None:
    facts = free(
        """
        from openreg_sim.runtime import FailCall, OpenRegError
        runtime().inject(FailCall(nth=2))
        raised = False
        try:
            with devprof.profile(activities=["cpu", "openreg"]) as prof:
                with devprof.record_function("work"):
                    runtime().launch("first")
                    runtime().launch("second")
        except OpenRegError:
            raised = True
        work = [one.name for one in free_work.told(prof.trace)]
        free_work.say(raised=raised, work=work, ranges=[*free_work.names_by_id(prof.trace).values()])
        """
    )
    assert facts == {"raised": True, "work": ["first"], "ranges": ["work"]}


def test_a_step_of_the_devices_clock_is_called_out(free: Any) -> None:
    facts = free(
        """
        from openreg_sim.runtime import ClockStep
        runtime().inject(ClockStep(nth=2, ticks=50_000_000))
        program = free_work.Program(runtime())
        session = free_work.record(runtime(), lambda: program.run([free_work.Step("kernel", 0, 0)] * 4))
        free_work.say(clean=session.prof.report.clean, warned=session.warned)
        """
    )
    assert facts["clean"] is False
    assert len(facts["warned"]) == 1
    assert "times may be wrong" in facts["warned"][0]


HOSTILE = """
    import time, threading, warnings
    from devprof.contract import Capabilities, hookimpl
    from devprof.model import ActivityType, GenericTraceActivity
    from devprof.registry import register

    class Session:
        def __init__(self, how): self.how = how
        def start(self): self.misbehave("start")
        def stop(self): self.misbehave("stop")
        def process_trace(self, logger, get_linked_activity, start_ns, end_ns):
            self.misbehave("process")
            for number in range(200_000 if self.how == "flood" else 1):
                logger.handle_activity(GenericTraceActivity(
                    ActivityType.CONCURRENT_KERNEL, "theirs", start_ns + number, start_ns + number + 1, id=number + 1))
        def misbehave(self, where):
            if self.how == f"raise in {where}": raise ValueError("the plugin's own mistake")
            if self.how == f"hang in {where}": threading.Event().wait()
            if self.how == f"exit in {where}": sys.exit(3)

    class Profiler:
        def __init__(self, how): self.how = how
        def name(self): return "hostile"
        def capabilities(self): return Capabilities()
        def available_activities(self): return {ActivityType.CONCURRENT_KERNEL}
        def configure(self, activity_types, config, *, ts_ms=None, duration_ms=None):
            if self.how == "raise in configure": raise ValueError("the plugin's own mistake")
            return Session(self.how)

    class Plugin:
        @hookimpl
        def devprof_activity_profilers(self): return [Profiler(sys.argv[1])]

    register(Plugin(), "hostile")
    program = free_work.Program(runtime())
    steps = [free_work.Step("enter", 0, 0), free_work.Step("kernel", 0, 0)] * 3
    session = free_work.record(runtime(), lambda: program.run(steps), activities=["cpu", "openreg", "hostile"])
    session.expected.sort()
    ours = [one for one in free_work.told(session.trace) if one.name != "theirs"]
    free_work.say(
        ours=sorted(ours) == session.expected, theirs=len(session.trace.named("theirs")), clean=session.prof.report.clean,
        failures=session.prof.report.ledgers["hostile"].failures, openreg=session.ledger.clean, warned=session.warned,
    )
"""


@pytest.mark.parametrize(
    "how",
    [
        "raise in configure",
        "raise in start",
        "raise in stop",
        "raise in process",
        "exit in start",
        "exit in stop",
        "hang in start",
        "hang in stop",
        "hang in process",
    ],
)
def test_a_plugin_that_misbehaves_costs_its_own_records_only(said: Any, how: str) -> None:
    facts = said(textwrap.dedent(BEFORE) + textwrap.dedent(HOSTILE), how, DEVPROF_HOOK_TIMEOUT_S="0.5")
    assert (facts["ours"], facts["theirs"], facts["openreg"], facts["clean"]) == (True, 0, True, False)
    assert len(facts["failures"]) == 1
    assert "hostile" in facts["failures"][0]


def test_a_plugin_that_floods_is_cut_off_at_the_limit_and_the_rest_is_there(said: Any) -> None:
    facts = said(textwrap.dedent(BEFORE) + textwrap.dedent(HOSTILE), "flood", DEVPROF_MAX_RECORDS="1000")
    assert (facts["ours"], facts["theirs"], facts["openreg"]) == (True, 1000, True)
    assert [text for text in facts["warned"] if "record limit reached" in text]


# -- interrupts and exits ----------------------------------------------------------------------------------------------


def test_an_interrupt_while_a_plugin_stops_comes_out_and_the_trace_is_there(said: Any) -> None:
    text = textwrap.dedent(BEFORE) + textwrap.dedent(
        """
        import os, signal, threading, time
        from devprof.contract import Capabilities, hookimpl
        from devprof.model import ActivityType
        from devprof.registry import register

        class Session:
            def start(self): pass
            def stop(self):
                os.kill(os.getpid(), signal.SIGINT)
                threading.Event().wait(60)
            def process_trace(self, logger, get_linked_activity, start_ns, end_ns): pass

        class Profiler:
            def name(self): return "slow"
            def capabilities(self): return Capabilities()
            def available_activities(self): return {ActivityType.CONCURRENT_KERNEL}
            def configure(self, activity_types, config, *, ts_ms=None, duration_ms=None): return Session()

        class Plugin:
            @hookimpl
            def devprof_activity_profilers(self): return [Profiler()]

        register(Plugin(), "slow")
        interrupted = False
        began = time.monotonic()
        prof = devprof.profile(activities=["cpu", "openreg", "slow"])
        try:
            with prof:
                with devprof.record_function("work"):
                    runtime().launch("scale")
        except KeyboardInterrupt:
            interrupted = True
        took_s = time.monotonic() - began
        with devprof.profile(activities=["cpu"]) as after:
            pass
        free_work.say(interrupted=interrupted, quick=took_s < 30, work=[one.op for one in free_work.told(prof.trace)],
                      after=len(after.trace))
        """
    )
    facts = said(text)
    assert facts == {"interrupted": True, "quick": True, "work": ["work"], "after": 0}


@pytest.mark.parametrize(
    "ending",
    ["", "sys.exit(0)", "del prof; import gc; gc.collect()"],
    ids=["end of the program", "sys.exit", "profile dropped"],
)
def test_a_program_that_ends_while_it_is_profiled_ends_quietly(ends: Any, ending: str) -> None:
    done = ends(
        f"""
        prof = devprof.profile(with_stack=True, profile_memory=True)
        prof.start()
        range = devprof.record_function("open").__enter__()
        runtime().launch("scale")
        {ending}
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_exception_that_ends_a_profiled_program_is_all_that_it_says(ends: Any) -> None:
    done = ends(
        """
        devprof.profile().start()
        raise ValueError("the user's own")
        """
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ValueError: the user's own"
    assert "devprof" not in done.stderr.replace("devprof.profile().start()", "")


# -- one at a time -----------------------------------------------------------------------------------------------------


def test_stop_inside_a_range_and_then_a_new_session_give_exactly_what_belongs_to_each(free: Any) -> None:
    facts = free(
        """
        prof = devprof.profile()
        prof.start()
        open_range = devprof.record_function("open at the stop").__enter__()
        runtime().launch("first")
        prof.stop()
        runtime().launch("between")
        first = prof.trace
        prof.start()
        runtime().launch("second")
        open_range.__exit__(None, None, None)
        with devprof.record_function("new"):
            runtime().launch("third")
        prof.stop()
        second = prof.trace
        free_work.say(
            first=[[one.name, one.op] for one in free_work.told(first)],
            second=[[one.name, one.op] for one in free_work.told(second)],
            ranges=[list(free_work.names_by_id(trace).values()) for trace in (first, second)],
            end=bool(first.end_ns[first.named("open at the stop")[0]] == first.window_end_ns),
        )
        """
    )
    assert facts == {
        "first": [["first", "open at the stop"]],
        "second": [["second", None], ["third", "new"]],
        "ranges": [["open at the stop"], ["new"]],
        "end": True,
    }


def test_a_fork_while_a_profile_runs_leaves_the_parents_trace_whole_and_the_child_free_to_profile(free: Any) -> None:
    facts = free(
        """
        import json, os
        reader, writer = os.pipe()
        prof = devprof.profile()
        with prof:
            with devprof.record_function("around the fork"):
                runtime().launch("before")
                runtime().device_synchronize()
                child = os.fork()
                if not child:
                    with devprof.record_function("of the child"):
                        prof.stop()
                    with devprof.profile(activities=["cpu"]) as own:
                        with devprof.record_function("of the child alone"):
                            pass
                    os.write(writer, json.dumps([event.name for event in own.events()]).encode())
                    os._exit(0)
                os.waitpid(child, 0)
                runtime().launch("after")
        free_work.say(
            work=[[one.name, one.op] for one in free_work.told(prof.trace)],
            ranges=list(free_work.names_by_id(prof.trace).values()),
            child=json.loads(os.read(reader, 1000)),
            clean=prof.report.clean,
        )
        """
    )
    assert facts == {
        "work": [["before", "around the fork"], ["after", "around the fork"]],
        "ranges": ["around the fork"],
        "child": ["of the child alone"],
        "clean": True,
    }


def test_threads_exceptions_and_abandoned_generators_leave_exactly_their_own_ranges(free: Any) -> None:
    facts = free(
        """
        import gc, threading

        @devprof.record_function("stretch")
        def waits():
            runtime().launch("of the generator")
            yield
            runtime().launch("never reached")

        def work(name):
            with devprof.record_function(name):
                runtime().launch(f"of {name}")

        def fails():
            with devprof.record_function("fails"):
                runtime().launch("before it fails")
                raise ValueError

        with devprof.profile() as prof:
            with devprof.record_function("around"):
                for number in range(3):  # threads that begin and end, the later ones with the ids of earlier ones
                    thread = threading.Thread(target=work, args=(f"thread {number}",))
                    thread.start()
                    thread.join()
                try:
                    fails()
                except ValueError:
                    runtime().launch("after it failed")
                generator = waits()
                next(generator)
                del generator
                gc.collect()
        listed = [[event.name, event.cpu_parent and event.cpu_parent.name] for event in prof.events()]
        kinds = [[name, parent] for name, parent in listed if not name.startswith(("of ", "or", "before", "after"))]
        work = [[one.name, one.op] for one in free_work.told(prof.trace)]
        free_work.say(kinds=sorted(kinds, key=str), work=sorted(work), clean=prof.report.clean)
        """
    )
    assert facts == {
        "kinds": [
            ["around", None],
            ["around", None],  # its span on the device
            ["fails", "around"],
            ["fails", None],
            ["stretch", "around"],
            ["stretch", "around"],
            ["stretch", None],
            *[[f"thread {number}", None] for number in range(3) for _ in range(2)],
        ],
        "work": [
            ["after it failed", "around"],
            ["before it fails", "fails"],
            ["of the generator", "stretch"],
            *[[f"of thread {number}", f"thread {number}"] for number in range(3)],
        ],
        "clean": True,
    }


def test_with_torch_absent_its_host_says_so(free: Any) -> None:
    facts = free(
        """
        from devprof.errors import UsageError
        try:
            devprof.profile(host="torch")
        except UsageError as error:
            words = str(error)
        try:
            devprof.trace_of
        except ModuleNotFoundError as error:
            free_work.say(words=words, reader=str(error))
        """
    )
    assert facts["words"].startswith("host='torch' cannot be used here:")
    assert "torch is not installed: pip install" in facts["reader"]
