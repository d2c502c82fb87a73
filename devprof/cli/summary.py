"""``devprof summary``: what is in a trace, on one page."""

from __future__ import annotations

from typing import Annotated

import typer

from devprof import analysis, rules
from devprof.analysis import Answer
from devprof.cli.output import Json, TraceFile, print_answer, print_json, read
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
    findings = rules.check(trace)
    if as_json:
        found = [{"rule": one.rule, "severity": one.severity.name.lower(), "says": one.says} for one in findings]
        print_json(
            {"trace": _facts(trace), **{key: a.as_dict()["rows"] for key, a in answers.items()}, "findings": found}
        )
        return
    print_answer(
        Answer(str(trace_file), {"fact": list(_facts(trace)), "value": [str(v) for v in _facts(trace).values()]})
    )
    for answer in answers.values():
        if len(answer):
            typer.echo()
            print_answer(answer, top)
    typer.echo()
    typer.echo(analysis.key_averages(trace).table(row_limit=top))
    for one in findings:
        typer.echo(str(one))


def _facts(trace: Trace) -> dict[str, object]:
    window_ns = trace.window_end_ns - trace.window_start_ns
    return {
        "events": len(trace),
        "places": ", ".join(place.title for place in trace.places),
        "rows": len(trace.rows),
        "window_s": window_ns / 1e9,
        **{key: value for key, value in trace.facts.items() if isinstance(value, str | int | float)},
    }
