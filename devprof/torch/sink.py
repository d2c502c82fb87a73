"""`trace_of`: the whole merged trace of a finished torch profile, without a file.

Kineto logs the trace to a logger of devprof's (``devprof://``), whose pointers to the activities are read into columns in one
pass. It saves as often as it is asked to; only torch counts, so nothing here touches what torch does with the profile.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from devprof.errors import UsageError
from devprof.store import PlaceKind, Trace
from devprof.store.readers.kineto_facts import backends_of
from devprof.torch.sink_columns import Columns
from devprof.torch.sink_items import ItemMaker
from devprof.torch.sink_native import read
from devprof.torch.sink_places import places_and_rows
from devprof.torch.sink_tree import parents

__all__ = ["result_of", "trace_of"]

_FLAGS = ("profile_memory", "record_shapes", "with_flops", "with_modules", "with_stack")
_TEXTS = ("trace_id", "host_name")
_OWN = "devprof"
_END_THREAD = "End thread"
_COLUMNS = {
    "activity_type": "type",
    "name": "name",
    "start_ns": "start",
    "end_ns": "end",
    "row": "row",
    "id": "id",
    "linked": "linked",
    "flow_id": "flow_id",
    "flow_type": "flow_type",
    "flow_start": "flow_start",
}
"""The columns of a Trace that the sink reads as they are."""


def trace_of(prof: Any) -> Trace:
    """Return everything that a finished torch profile recorded, of every backend, as a `Trace`.

    The trace is independent of the profile: it stays when the profile is gone, and the profile can be exported before and
    after. It can be asked for as often as wanted; each time the columns are read anew. Callable from any thread.

    Names are as they were recorded. Items have Kineto's keys; an item that is ``null`` is left out. Beside them stands what
    only torch's own events know: ``"Record scope"`` (unless function or user scope), ``"End thread"`` (of an op that ended on
    another thread than it began on: native id, 0: not known), ``"Flops"``, ``"Overload name"``. `linked` of a host range is 0,
    its `parent` tells what is around it.

    Args:
        prof: a `torch.profiler.profile` (its latest finished cycle is meant), a `torch.autograd.profiler.profile`, or what
            torch's `_disable_profiler` returned.

    Raises:
        UsageError: it is no profile, has not finished, or holds no trace.
        BuildError: the native part cannot be built or loaded here; one sentence says why.
    """
    columns = read(result_of(prof))
    _name_end_threads(columns)
    facts = _facts(columns)
    places, rows = places_and_rows(columns, _backends(facts), _own_backend(prof))
    device_rows = np.array([places[row.place].kind is PlaceKind.DEVICE for row in rows], dtype=np.bool_)
    on_device = device_rows[columns.fixed["row"]] if rows else np.zeros(0, dtype=np.bool_)
    maker = ItemMaker(columns.texts)  # adds texts, so it comes before they are frozen
    items, counters = maker.columns(columns.items), maker.columns(columns.counters)
    return Trace(
        strings=tuple(columns.texts),
        **{name: columns.fixed[column] for name, column in _COLUMNS.items()},
        linked_user=np.zeros(len(on_device), dtype=np.int64),
        parent=parents(columns.fixed, on_device),
        places=tuple(places),
        rows=tuple(rows),
        items=items,
        counters=counters,
        window_start_ns=columns.window_start_ns,
        window_end_ns=columns.window_end_ns,
        facts=facts,
    )


def result_of(prof: Any) -> Any:
    """Return the finished result of a profile.

    Raises:
        UsageError: it is no profile of torch's, has not finished, or holds no trace.
    """
    result: Any = prof
    if not isinstance(prof, torch._C._autograd._ProfilerResult):
        inner = prof if hasattr(prof, "kineto_results") else getattr(prof, "profiler", prof)
        if inner is not None and not hasattr(inner, "kineto_results"):
            hint = "; its trace is its attribute `trace`" if hasattr(type(prof), "trace") else ""
            raise UsageError(
                f"this is a {type(prof).__name__}; expected a torch.profiler.profile that has finished{hint}"
            )
        result = inner and inner.kineto_results
    if result is None:
        raise UsageError(
            "this profile has no trace yet: it has not been started, still records, or its schedule is between two cycles. Ask "
            "after it has stopped, or in its on_trace_ready"
        )
    if result.trace_start_ns() == 0:
        raise UsageError(
            "this profile holds no trace: another profile ended it inside torch, or it was stopped on another thread than it "
            "was started on. Record it again, one profile at a time"
        )
    return result


def _own_backend(prof: Any) -> str:
    """Return the backend that the session is of: whose the devices are that no plugin of devprof's has."""
    inner = getattr(prof, "profiler", None) or prof
    return str(getattr(inner, "use_device", None) or torch._C._get_privateuse1_backend_name())


def _backends(facts: Mapping[str, object]) -> dict[str, str]:
    """Take the names of backends, by their devices' numbers, out of the account: places carry them."""
    report = facts.get("report")
    found = backends_of({_OWN: report})
    if isinstance(report, dict):
        report.pop("backends", None)
    return found


def _name_end_threads(columns: Columns) -> None:
    """Put native thread ids where torch gave its own numbers."""
    native = {row.torch_thread: row.resource for row in columns.rows if row.torch_thread >= 0}
    for part in columns.items.get(_END_THREAD, ()):
        part.values[:] = [native.get(number, 0) for number in part.values.tolist()]


def _facts(columns: Columns) -> dict[str, object]:
    from devprof import __version__

    given = {key: _value(text) for key, text in columns.facts.items()}
    threads = {str(row.resource): row.torch_thread for row in columns.rows if row.torch_thread >= 0}
    facts: dict[str, object] = {
        "devprof_version": __version__,
        "host": "torch",
        "host_name": socket.gethostname(),
        "torch_version": torch.__version__,
        "torch_thread_numbers": threads,
        "spans": [span._asdict() for span in columns.spans],
        **{key: bool(given.pop(key, False)) for key in _FLAGS},
        **{key: given.pop(key) for key in _TEXTS if key in given},
    }
    if _OWN in given:
        facts["report"] = given.pop(_OWN)
    if columns.lines:
        facts["log"] = [{"severity": severity, "text": text} for severity, text in columns.lines]
    return {**facts, "metadata": given}


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
