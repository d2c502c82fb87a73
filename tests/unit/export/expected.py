"""What an export should say of a trace, event by event and without haste."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from devprof.model import ActivityType, Role
from devprof.store import ROLES, PlaceKind, RawJson, Trace


def clean(text: str) -> str:
    """A text as UTF-8 can hold it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def category(activity_type: int) -> str:
    """What a file calls a kind of event."""
    known = activity_type in set(ActivityType)
    return ActivityType(activity_type).label if known else f"activity_{activity_type}"


def args_of(trace: Trace, event: int) -> dict[str, Any]:
    """Args by the keys of the trace: from ids, and the items, which hold; not what the row says."""
    kind, role = int(trace.activity_type[event]), ROLES[int(trace.role[event])]
    own, linked = int(trace.id[event]), int(trace.linked[event])
    op = own if role in (Role.OP, Role.ANNOTATION) else 0 if kind == ActivityType.PYTHON_FUNCTION else linked
    launched = role in (Role.LAUNCH, Role.KERNEL, Role.COPY, Role.SET, Role.SYNC)
    args: dict[str, Any] = {"External id": op} if op else {}
    args |= {"correlation": own} if launched and own else {}
    row = trace.rows[int(trace.row[event])]
    place = trace.places[row.place]
    said = {"device": place.id, "stream": row.id} if place.kind is PlaceKind.DEVICE else {}
    items = {key: value for key, value in trace.items_of(event).items() if not _is(value, said.get(key))}
    return args | {key: _plain(value) for key, value in items.items()}


def _is(value: Any, number: int | None) -> bool:
    return type(value) is int and value == number


def written_keys(trace: Trace) -> dict[str, str]:
    """Keys of args as they stand in a file, where those that read the same once cleaned get a number."""
    written: dict[str, str] = {}
    for key in dict.fromkeys(["External id", "correlation", *trace.items]):
        text, number = clean(key), 1
        while text in written.values():
            number += 1
            text = f"{clean(key)} ({number})"
        written[key] = text
    return written


def is_sample(trace: Trace, event: int) -> bool:
    """True for a counter's event that has a value."""
    if ROLES[int(trace.role[event])] is not Role.COUNTER:
        return False
    return any(column.find(event) >= 0 for column in trace.counters.values())


def samples(trace: Trace) -> Iterator[tuple[str, int, float]]:
    """Name, time and value of each sample."""
    for event in range(len(trace)):
        for key, column in trace.counters.items():
            if is_sample(trace, event) and (at := column.find(event)) >= 0:
                name = f"{clean(trace.name_of(event))} {clean(key)}"
                yield name, int(trace.start_ns[event]), float(column.values[at])


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return str(list(value))
    return clean(str(value)) if isinstance(value, RawJson | str) else value
