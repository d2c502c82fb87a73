"""The second program runs as it is: torch's legacy profiler gets its device time from the plugin's events."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from simland import Trace, footer
from torch.autograd.profiler_util import _format_time

EXAMPLE = Path(__file__).parents[2] / "examples/legacy_profiler.py"
PROGRAM = """\
import torch
from torch.autograd.profiler import profile as autograd_profile
from torch.profiler import record_function

with autograd_profile(use_device="openreg", record_shapes=True) as prof:
    with record_function("matmul"):
        x = torch.randn(512, 512, device="openreg")
        y = torch.randn(512, 512, device="openreg")
        z = x @ y

print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
prof.export_chrome_trace("openreg_trace.json")
"""
OPS = {"matmul": 1, "aten::randn": 2, "aten::empty": 2, "aten::normal_": 2, "aten::matmul": 1, "aten::mm": 1}
"""How often each op or range happens."""
PARENTS = {
    ("matmul", None), ("aten::randn", "matmul"), ("aten::empty", "aten::randn"), ("aten::normal_", "aten::randn"),
    ("aten::matmul", "matmul"), ("aten::mm", "aten::matmul"),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcome(fresh: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What became of the program in a fresh interpreter, as a user would run it."""
    folder = tmp_path_factory.mktemp("verbatim")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = fresh("program.py", folder=folder)
    done.folder = folder
    return done


COUNTED = """
    import collections, runpy, sys
    from openreg_sim.stubs import OpenRegStubs

    calls = collections.Counter()
    def counted(name):
        original = getattr(OpenRegStubs, name)
        def call(*args):
            calls[name] += 1
            result = original(*args)
            if name == "elapsed":
                measured.append(result)
            return result
        setattr(OpenRegStubs, name, call)
    measured = []
    for name in ("record", "elapsed", "mark", "range_push", "range_pop", "synchronize", "enabled", "on_each_device"):
        counted(name)

    import simland
    prof = runpy.run_path(sys.argv[1])["prof"]
    events = list(prof.function_events)
    simland.say(
        state=prof.profiler_kind.name,
        calls=calls,
        measured=measured,
        events=[
            dict(
                name=e.name, device=e.device_type.name, legacy=e.is_legacy, shapes=e.input_shapes,
                self=e.self_device_time_total, total=e.device_time_total, cpu=e.cpu_time_total,
                parent=e.cpu_parent.name if e.cpu_parent else None,
                children=[child.device_time_total for child in e.cpu_children],
                kernels=[(kernel.name, kernel.duration) for kernel in e.kernels],
            )
            for e in events
        ],
        averages={
            row.key: dict(self=row.self_device_time_total, total=row.device_time_total, count=row.count)
            for row in prof.key_averages()
        },
        table=prof.key_averages().table(),
    )
"""


@pytest.fixture(scope="module")
def facts(said: Any) -> Any:
    """What torch lists after the program, and how often it called the plugin's stubs."""
    return said(COUNTED, str(EXAMPLE))


def test_the_example_is_the_program() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == PROGRAM


def test_it_exits_with_0_and_torch_complains_of_nothing(outcome: Any) -> None:
    assert outcome.returncode == 0
    assert [line for line in outcome.stderr.splitlines() if not line.startswith("USDT:")] == []


def test_it_prints_a_table_with_device_time_for_every_op(outcome: Any) -> None:
    titles, *rows = _table(outcome.stdout)
    shown = {row[0]: dict(zip(titles, row, strict=True)) for row in rows}
    assert {name: row["# of Calls"] for name, row in shown.items()} == {name: str(n) for name, n in OPS.items()}
    assert [name for name, row in shown.items() if row["OPENREG total"] == "0.000us"] == []


def _table(printed: str) -> list[list[str]]:
    """Split a printed table into its titles and rows."""
    parts = re.split(r"^[- ]+\n", printed, flags=re.MULTILINE)
    return [re.split(r"\s{2,}", line.strip()) for part in parts[1:3] for line in part.splitlines()]


def test_it_leaves_one_file_which_is_strict_json_and_has_no_device_rows(outcome: Any) -> None:
    """The legacy path gives times to tables only: no record of a device reaches the file."""
    assert sorted(path.name for path in outcome.folder.iterdir()) == ["openreg_trace.json", "program.py"]
    trace = Trace.read(outcome.folder / "openreg_trace.json")
    assert Counter(one.name for one in trace.slices("cpu_op", "user_annotation")) == OPS
    assert {one.category for one in trace.slices()} == {"cpu_op", "user_annotation", "Trace"}
    assert trace.row_names() == {}


def test_torch_takes_the_state_that_asks_stubs(facts: Any) -> None:
    assert facts["state"] == "KINETO_PRIVATEUSE1_FALLBACK"


def test_record_is_called_twice_per_op_and_elapsed_once(facts: Any) -> None:
    n_ops = sum(OPS.values())
    assert facts["calls"] == {"record": 2 * n_ops, "elapsed": n_ops}


def test_every_op_has_the_time_between_its_two_events_as_its_one_device_event(facts: Any) -> None:
    listed = [(event["name"], event["kernels"]) for event in facts["events"]]
    assert sorted(duration for _, kernels in listed for _, duration in kernels) == sorted(map(int, facts["measured"]))
    assert [(name, [kernel for kernel, _ in kernels]) for name, kernels in listed] == [
        (name, [name]) for name, _ in listed
    ]
    assert {(event["device"], event["legacy"]) for event in facts["events"]} == {("CPU", True)}


def test_nesting_is_right(facts: Any) -> None:
    assert {(event["name"], event["parent"]) for event in facts["events"]} == PARENTS
    assert Counter(event["name"] for event in facts["events"]) == OPS
    for event in facts["events"]:
        assert event["self"] == event["total"] - sum(event["children"])
        assert event["total"] >= sum(event["children"])


def test_the_table_shows_the_stubs_time_per_op(facts: Any) -> None:
    for name, row in facts["averages"].items():
        events = [event for event in facts["events"] if event["name"] == name]
        assert (row["count"], row["self"], row["total"]) == (
            OPS[name], sum(event["self"] for event in events), sum(event["total"] for event in events),
        )  # fmt: skip
    assert facts["averages"]["aten::matmul"]["total"] >= facts["averages"]["aten::mm"]["total"] > 0


def test_nothing_is_counted_twice(facts: Any) -> None:
    """The own times of all ops add up to the time of the outermost, which is the table's footer."""
    over_ops = sum(event["self"] for event in facts["events"])
    assert over_ops == sum(event["total"] for event in facts["events"] if event["parent"] is None)
    assert footer(facts["table"]) == _format_time(over_ops)


def test_shapes_are_recorded(facts: Any) -> None:
    assert [e["shapes"] for e in facts["events"] if e["name"] == "aten::mm"] == [[[512, 512], [512, 512]]]
