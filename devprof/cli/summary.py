"""``devprof summary``: what is in a trace, on one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import typer

from devprof import analysis, rules
from devprof.analysis import Answer
from devprof.cli.output import Json, TraceFile, averages_as_rows, echo, print_answer, print_averages, print_json, read
from devprof.store import Trace

__all__ = ["summary"]


def summary(
    trace_file: TraceFile,
    top: Annotated[int, typer.Option(help="Rows of each table.", min=1)] = 10,
    as_json: Json = False,
) -> None:
    """Show what a trace holds: device time by name, streams and why they were idle, overlap, steps, ops."""
    trace = read(trace_file)
    answers = {
        "device_time": analysis.device_breakdown(trace),
        "streams": analysis.stream_usage(trace),
        "overlap": analysis.overlap(trace),
        "launch_latency": analysis.launch_latency(trace),
        "steps": analysis.steps(trace),
    }
    averages = analysis.key_averages(trace)
    findings = rules.check(trace)
    if as_json:
        rows = {**{key: answer.as_dict()["rows"] for key, answer in answers.items()}, "ops": averages_as_rows(averages)}
        found = [{"rule": one.rule, "severity": one.severity.name.lower(), "says": one.says} for one in findings]
        print_json({"trace": _facts(trace), **rows, "findings": found})
        return
    print_answer(
        Answer(str(trace_file), {"fact": list(_facts(trace)), "value": [str(v) for v in _facts(trace).values()]})
    )
    shown = {**answers, "steps": _since_start(answers["steps"], trace.window_start_ns)}
    for answer in shown.values():
        if len(answer):
            typer.echo()
            print_answer(answer, top)
    typer.echo()
    print_averages(averages, top)
    for one in findings:
        echo(str(one))


def _since_start(steps: Answer, window_start_ns: int) -> Answer:
    """Return the steps with starts counted from the window's: seconds since 1970 say nothing to a reader."""
    columns = dict(steps.columns)
    columns["start_ns"] = np.asarray(steps.column("start_ns"), dtype=np.int64) - window_start_ns
    return Answer(steps.title, columns, steps.notes)


def _facts(trace: Trace) -> dict[str, object]:
    start_ns, end_ns = trace.user_window_ns
    return {
        "events": len(trace),
        "places": _places(trace),
        "rows": len(trace.rows),
        "window_s": (end_ns - start_ns) / 1e9,
        **{key: value for key, value in trace.facts.items() if isinstance(value, str | int | float)},
        **_ranks(trace),
    }


def _places(trace: Trace) -> str:
    """Return the processes and devices; a machine's other devices, which Kineto lists, only by their number."""
    used = {row.place for row in trace.rows}
    listed = [place.title for number, place in enumerate(trace.places) if number in used]
    others = len(trace.places) - len(listed)
    return ", ".join(listed) + (f" and {others} without events" if others else "")


def _ranks(trace: Trace) -> dict[str, object]:
    """Return what a merged trace says of its ranks."""
    ranks, alignment = trace.facts.get("ranks"), trace.facts.get("alignment")
    if not isinstance(ranks, list) or not isinstance(alignment, Mapping):
        return {}
    numbers = ", ".join(str(entry.get("rank")) for entry in ranks if isinstance(entry, Mapping))
    notes = alignment.get("notes")
    said = "; ".join(map(str, notes if isinstance(notes, list) else ()))
    return {"ranks": numbers, "lined_up_by": alignment.get("by"), **({"notes": said} if said else {})}
