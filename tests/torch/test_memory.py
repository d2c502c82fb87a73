"""A plugin's memory reports reach torch's profiler: on the op, in the tables and in the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import toyland
from toyland import Deliver, Delivered

from devprof.contract import MemoryReporter

MIB = 2**20


@pytest.fixture
def with_memory(deliver: Deliver) -> Callable[..., Delivered]:
    """Run one session whose body reports memory through the reporter that the plugin was configured with."""

    def run(report: Callable[[MemoryReporter], None], *, inside_op: bool = True, **options: Any) -> Delivered:
        plugin = toyland.scripted()

        def body() -> None:
            memory = plugin.sessions[-1].config.memory
            assert memory is not None
            if inside_op:
                toyland.run_in_op(lambda: report(memory))
            else:
                report(memory)

        return deliver(plugin, body=body, options=options)

    return run


WithMemory = Callable[..., Delivered]


def allocate_and_free(memory: MemoryReporter) -> None:
    memory.report_memory_usage(0x1000, 3 * MIB, 3 * MIB, 4 * MIB, 0)
    memory.report_memory_usage(0x1000, -MIB, 2 * MIB, 4 * MIB, 0)


def reports(session: Delivered, name: str = "[memory]") -> list[dict[str, Any]]:
    """Return the file's memory events of the device (torch's number for it is 20)."""
    return [
        event["args"]
        for event in session.trace["traceEvents"]
        if event["name"] == name and event["args"]["Device Type"] == 20
    ]


def test_reported_bytes_are_on_the_op_that_was_running(with_memory: WithMemory) -> None:
    session = with_memory(allocate_and_free, profile_memory=True)
    (op,) = [event for event in session.prof.events() if event.name == "toy::run"]
    assert op.device_memory_usage == 2 * MIB
    (row,) = [row for row in session.prof.key_averages() if row.key == "toy::run"]
    assert row.device_memory_usage == 2 * MIB
    assert "2.00 MB" in session.prof.key_averages().table()


def test_each_report_is_in_the_file_with_its_address_and_totals(with_memory: WithMemory) -> None:
    session = with_memory(allocate_and_free, profile_memory=True)
    keys = ("Addr", "Bytes", "Device Id", "Total Allocated", "Total Reserved")
    assert [tuple(args[key] for key in keys) for args in reports(session)] == [
        (0x1000, 3 * MIB, 0, 3 * MIB, 4 * MIB),
        (0x1000, -MIB, 0, 2 * MIB, 4 * MIB),
    ]


def test_what_is_freed_again_sums_to_nothing(with_memory: WithMemory) -> None:
    def balanced(memory: MemoryReporter) -> None:
        for i in range(10):
            memory.report_memory_usage(i + 1, MIB, MIB, MIB, 1)
            memory.report_memory_usage(i + 1, -MIB, 0, MIB, 1)

    session = with_memory(balanced, profile_memory=True)
    assert sum(args["Bytes"] for args in reports(session)) == 0
    assert [args["Device Id"] for args in reports(session)] == [1] * 20
    (op,) = [event for event in session.prof.events() if event.name == "toy::run"]
    assert op.device_memory_usage == 0


def test_a_report_outside_any_op_has_a_row_of_its_own(with_memory: WithMemory) -> None:
    session = with_memory(
        lambda memory: memory.report_memory_usage(1, MIB, MIB, MIB, 0), inside_op=False, profile_memory=True
    )
    (row,) = [row for row in session.prof.key_averages() if row.key == "[memory]"]
    assert row.device_memory_usage == MIB


def test_a_failed_allocation_is_in_the_file_as_out_of_memory(with_memory: WithMemory) -> None:
    session = with_memory(lambda memory: memory.report_out_of_memory(2**40, MIB, 2 * MIB, 1), profile_memory=True)
    (args,) = reports(session, "[OutOfMemory]")
    assert (args["Bytes"], args["Total Allocated"], args["Total Reserved"], args["Device Id"]) == (
        2**40,
        MIB,
        2 * MIB,
        1,
    )


def test_nothing_is_reported_where_memory_is_not_profiled(with_memory: WithMemory) -> None:
    def both(memory: MemoryReporter) -> None:
        allocate_and_free(memory)
        memory.report_out_of_memory(1, 2, 3, 0)

    session = with_memory(both)
    assert reports(session) == []
    assert reports(session, "[OutOfMemory]") == []
    (op,) = [event for event in session.prof.events() if event.name == "toy::run"]
    assert op.device_memory_usage == 0


def test_a_report_after_the_session_goes_nowhere(with_memory: WithMemory) -> None:
    kept: list[MemoryReporter] = []
    with_memory(kept.append, profile_memory=True)
    allocate_and_free(kept[0])
    session = with_memory(lambda memory: None, profile_memory=True)
    assert reports(session) == []
    assert torch.ones(1).item() == 1
