"""`made`: traces written by hand, event by event."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.store import ItemKind, Place, PlaceKind, Row, Trace, TraceBuilder

_JSON = ("Input Dims", "Concrete Inputs")


class Made:
    """A trace in the making; times are ns from 0, threads and streams are numbers."""

    def __init__(self) -> None:
        self._builder = TraceBuilder()
        self._host = self._builder.place(Place(7, PlaceKind.HOST, "python"))

    def add(self, kind: ActivityType, name: str, start: int, end: int, row: int, **fields: Any) -> int:
        """Add an event, and return its index; what is no field of a record is an item, with spaces for underscores."""
        own = {key: fields.pop(key) for key in ("id", "linked") if key in fields}
        activity = GenericTraceActivity(activity_type=kind, activity_name=name, start_ns=start, end_ns=end, **own)
        event = self._builder.add(ActivityBatch.from_activities([activity]), row)
        for key, value in fields.items():
            self.item(event, key.replace("_", " "), value)
        return event

    def item(self, event: int, key: str, value: Any) -> None:
        """Add an item to an event."""
        if key in _JSON:
            self._builder.add_items(key, ItemKind.JSON, [event], [json.dumps(value)])
        elif isinstance(value, str):
            self._builder.add_items(key, ItemKind.STRING, [event], [value])
        else:
            self._builder.add_items(key, ItemKind.BOOL if isinstance(value, bool) else ItemKind.INT, [event], [value])

    def thread(self, number: int) -> int:
        """Return the row of a thread."""
        return self._builder.row(Row(self._host, number))

    def stream(self, number: int = 0, *, device: int = 0, backend: str = "toy") -> int:
        """Return the row of a stream."""
        return self._builder.row(Row(self._builder.place(Place(device, PlaceKind.DEVICE, backend=backend)), number))

    def op(self, name: str, start: int, end: int, *, thread: int = 1, **fields: Any) -> int:
        """Add an op."""
        return self.add(ActivityType.CPU_OP, name, start, end, self.thread(thread), **fields)

    def range(self, name: str, start: int, end: int, *, thread: int = 1, **fields: Any) -> int:
        """Add a user's range."""
        return self.add(ActivityType.USER_ANNOTATION, name, start, end, self.thread(thread), **fields)

    def launch(self, start: int, end: int, *, thread: int = 1, **fields: Any) -> int:
        """Add a launch."""
        return self.add(ActivityType.PRIVATEUSE1_RUNTIME, "launch", start, end, self.thread(thread), **fields)

    def frame(self, name: str, start: int, end: int, *, thread: int = 1, **fields: Any) -> int:
        """Add the call of a Python function."""
        return self.add(ActivityType.PYTHON_FUNCTION, name, start, end, self.thread(thread), **fields)

    def memory(self, at: int, size: int, *, thread: int = 1, name: str = "[memory]", **fields: Any) -> int:
        """Add an allocation or a free of host memory, or of the device that is named."""
        items = {"Bytes": size, "Device": "cpu", **fields}
        return self.add(ActivityType.CPU_INSTANT_EVENT, name, at, at, self.thread(thread), **items)

    def kernel(self, name: str, start: int, end: int, *, stream: int | None = None, **fields: Any) -> int:
        """Add a kernel."""
        row = self.stream() if stream is None else stream
        return self.add(ActivityType.CONCURRENT_KERNEL, name, start, end, row, **fields)

    def build(self, **facts: Any) -> Trace:
        """Return the trace; its window begins at 0."""
        return self._builder.build(window_end_ns=10**6, facts=facts)


@pytest.fixture
def made() -> Made:
    """A trace in the making."""
    return Made()


@pytest.fixture(scope="session")
def new_trace() -> Callable[[], Made]:
    """For tests that make several."""
    return Made
