"""What becomes of a session where a plugin's hook misbehaves: every hook, every fault, both hosts, as data.

The tests in this folder make each cell happen and compare all of what is seen; docs/faults.md is made from the same cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "CELLS",
    "CONDITIONS",
    "EXCEPTIONS",
    "FAULTS",
    "FILES",
    "FINDING",
    "HOOKS",
    "HOSTS",
    "STUBS",
    "WHILE_RECORDING",
    "Cell",
    "FileCell",
    "Kept",
    "Verdict",
    "cell",
    "found_cell",
    "stub_cell",
]

HOSTS = ("torch", "python")

HOOKS = (
    "configure",
    "native_correlation",
    "clock_domain",
    "sample_clock",
    "start",
    "push_correlation_id",
    "pop_correlation_id",
    "push_user_correlation_id",
    "pop_user_correlation_id",
    "toggle_collection_dynamic",
    "flush_trace",
    "stop",
    "process_trace",
    "status",
    "errors",
    "get_device_infos",
    "get_resource_infos",
    "get_device_properties",
    "get_metadata",
    "get_trace_buffer",
)
"""The hooks of a session in the order of their first call."""

FAULTS = {
    "raise": "raises an exception, `SystemExit` included",
    "wrong type": "returns an object of a class of its own",
    "hang": "does not come back before the session is over",
    "flood": "returns, or hands over, more than can be meant: an endless collection, a hundred thousand facts, a million items",
    "re-enter": "starts a profile of its own, and stops the one that runs",
    "call torch": "runs torch ops",
    "fork": "forks, and returns in the child too",
}

FINDING = ("the module's import", "devprof_activity_profilers", "name", "capabilities", "available_activities")
"""What runs while plugins are found, in that order."""

STUBS = ("record", "elapsed", "mark", "range_push", "range_pop", "synchronize", "enabled", "on_each_device")
"""Hooks of torch's legacy profiler, each on the thread of the op."""

WHILE_RECORDING = ("flush_trace",)
"""Hooks that devprof's own host alone calls: torch hands out nothing before the stop."""

PER_OP = HOOKS[5:9]
AFTER_THE_RECORDS = HOOKS[HOOKS.index("process_trace") + 1 :]


class Verdict(Enum):
    """What devprof does with the plugin; the value is the word in the page."""

    NOTHING = "no harm"
    SET_ASIDE = "set aside"
    QUARANTINED = "quarantined"
    CUT_OFF = "cut off"
    WAITED_FOR = "waited for"
    LEFT_OUT = "left out"
    NO_EVENT = "no event"
    UNDONE = "not done"


class Kept(Enum):
    """What of the plugin's own records is in the trace."""

    ALL = "all"
    NONE = "none"
    SOME = "up to the limit"


@dataclass(frozen=True, slots=True)
class Cell:
    """What is seen where one hook misbehaves in one way under one host.

    The user's program, the host's own events, the other plugins and the next session are whole in every cell.

    Attributes:
        verdict: what becomes of the plugin.
        kept: what is in the trace of its own records.
        told: there is one warning, which names plugin and hook.
        next_time: it takes part in the next session of the process.
    """

    verdict: Verdict
    kept: Kept
    told: bool
    next_time: bool

    def __str__(self) -> str:
        return self.verdict.value if self.kept is Kept.ALL else f"{self.verdict.value}, {self.kept.value} kept"


def cell(hook: str, fault: str) -> Cell:
    """Return what is seen; the same under all hosts that call the hook."""
    own = Kept.ALL if hook in AFTER_THE_RECORDS else Kept.NONE
    if fault in ("re-enter", "call torch", "fork"):
        return Cell(Verdict.NOTHING, Kept.ALL, told=False, next_time=True)
    if fault == "hang":
        if hook in PER_OP:
            return Cell(Verdict.WAITED_FOR, Kept.ALL, told=False, next_time=True)
        return Cell(Verdict.QUARANTINED, own, told=True, next_time=False)
    if hook in ("flush_trace", "process_trace") and fault == "flood":
        return Cell(Verdict.CUT_OFF, Kept.SOME, told=True, next_time=True)
    return Cell(Verdict.SET_ASIDE, own, told=True, next_time=True)


def found_cell(hook: str, fault: str) -> Verdict:
    """Return what becomes of a plugin that misbehaves while it is found; the same under both hosts.

    Left out: one warning names it, and it takes part in no session. In every other cell nothing is said and it takes part.
    """
    if fault in ("raise", "wrong type", "flood"):
        return Verdict.LEFT_OUT
    return Verdict.WAITED_FOR if fault == "hang" else Verdict.NOTHING


def stub_cell(stub: str, fault: str) -> Verdict:
    """Return what becomes of a call of a stub of torch's legacy profiler."""
    if fault in ("raise", "wrong type", "flood"):
        return Verdict.NO_EVENT if stub in STUBS[:2] else Verdict.UNDONE
    return Verdict.WAITED_FOR if fault == "hang" else Verdict.NOTHING


CELLS = {
    (hook, fault, host): cell(hook, fault)
    for hook in HOOKS
    for fault in FAULTS
    for host in HOSTS
    if host == "python" or hook not in WHILE_RECORDING
}


FILES = {
    ".devprof": "`Trace.save`, `devprof convert`, `devprof run`",
    ".json": "`export_chrome_trace`",
    ".json.gz": "the same, packed",
    ".pftrace": "`perfetto_trace`",
    ".pftrace.gz": "the same, packed",
    ".speedscope.json": "`speedscope`",
    ".speedscope.json.gz": "the same, packed",
    ".folded": "`stacks`",
    ".csv": "`table`",
    ".csv.gz": "the same, packed",
    ".parquet": "`table`, through polars",
    "report.html": "`devprof report`",
    "prof.json": "`prof.export_chrome_trace`, without torch",
    "handler": "`tensorboard_trace_handler`",
}
"""Ways to write a file, by the end of its name."""


@dataclass(frozen=True, slots=True)
class FileCell:
    """What is seen where writing a file meets a condition; an earlier file of that name is untouched in all of them.

    Attributes:
        error: class of what is raised; None: the process is gone.
        says: the message, with TARGET for the file's name and FOLDER for its folder's.
        left: whether a hidden file is left that has only reserved a name.
    """

    error: str | None
    says: str
    left: bool = False

    def __str__(self) -> str:
        raised = f"`{self.error}`: {self.says}" if self.says else f"`{self.error}`"
        gone = "a hidden, empty `.NAME.partial.json` is left" if self.left else "nothing is left"
        return gone if self.error is None else raised


CONDITIONS = {
    "disk full": FileCell("CaptureError", "cannot write TARGET: File too large"),
    "permission": FileCell("UsageError", "cannot write TARGET: no permission to make a file in FOLDER"),
    "interrupted": FileCell("KeyboardInterrupt", ""),
    "killed": FileCell(None, ""),
}
"""The same for every file but those of `EXCEPTIONS`."""

EXCEPTIONS = {("handler", "killed"): FileCell(None, "", left=True)}
