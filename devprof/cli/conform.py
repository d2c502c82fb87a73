"""``devprof conform``: does a plugin keep what the contract promises? A report, and an exit code for CI."""

from __future__ import annotations

import importlib
import os
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from devprof.cli.output import Json, print_json
from devprof.cli.torch_device import name_unnamed
from devprof.errors import UsageError

__all__ = ["conform"]


class Host(Enum):
    """Under which host to try a plugin."""

    PYTHON = "python"
    TORCH = "torch"
    BOTH = "both"


def conform(
    plugin: Annotated[
        str,
        typer.Argument(help="An installed plugin, 'module:attribute' of a profiler, or a file of an earlier --record."),
    ] = "",
    only: Annotated[
        list[str] | None, typer.Option(help="Number of a check, such as C301, or the start of one; may be given again.")
    ] = None,
    host: Annotated[
        Host, typer.Option(help="devprof's own host, torch's, or both; torch only where it runs here.")
    ] = Host.BOTH,
    workload: Annotated[
        str, typer.Option(help="'module:attribute' of what makes the device work; default: the plugin's own.")
    ] = "",
    record: Annotated[
        Path | None, typer.Option(help="Save the run as this file, to be judged again where there is no device.")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", "-f", help="A fault to inject into a recorded run, such as drop:3.")
    ] = None,
    explain: Annotated[list[str] | None, typer.Option(help="Explain a check by its number, and do nothing.")] = None,
    as_json: Json = False,
) -> None:
    """Check a plugin against every promise of the contract. Exit code 1 where one is broken."""
    # Kineto writes two lines per session, and there are hundreds
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    if explain:
        _explain(explain)
        return
    if not plugin:
        raise UsageError(
            "say which plugin: the name of an installed one (`devprof plugins` lists them), or a recording"
        )
    checks = _chosen(only or [])
    run = _recorded(plugin, fault or []) if Path(plugin).is_file() else _installed(plugin, workload, fault or [])
    report = run.judged(checks, host, record, with_features=not only)
    if as_json:
        print_json(
            report.as_dict() | ({"torch": f"not tried, because {run.without_torch}"} if run.without_torch else {})
        )
    else:
        _print(report, plugin, run)
    if not report.passed:
        raise typer.Exit(1)


@dataclass(slots=True)
class _Run:
    """What is to be judged: a plugin, its workload, how hard to try, what to call it; and why not under torch."""

    plugin: Any
    workload: Any
    settings: Any
    title: str = ""
    without_torch: str = ""

    def judged(self, checks: list[Any], host: Host, record: Path | None, *, with_features: bool) -> Any:
        """Run the checks, and save the run where that is asked for."""
        from devprof.testing.conformance import Bench, Device, KitRecorder, Report, Subject, features_of, run_checks

        with Subject(self.plugin) as subject, ExitStack() as stack:
            recorder = None
            device = Device(self.workload)
            if record is not None:
                recorder = stack.enter_context(KitRecorder(subject, self.workload, self.settings))
                device = recorder.device
            hosts, self.without_torch = _hosts(host, Bench(subject, device))
            findings = run_checks(checks, lambda name: Bench(subject, device, name, self.settings), hosts)
            features = features_of(Bench(subject, device)) if with_features else {}
            if recorder is not None and record is not None:
                _save(recorder.recording(findings), record)
            return Report(self.title or subject.title, findings, features)


def _installed(plugin: str, workload: str, faults: list[str]) -> _Run:
    from devprof.testing.conformance import Settings, made, workload_of

    if faults:
        raise UsageError("faults are injected into a recorded run, not into a device: name a file of --record")
    return _Run(plugin, made(_attribute(workload)) if workload else workload_of(plugin), Settings())


def _recorded(path: str, faults: list[str]) -> _Run:
    from devprof.replay import load
    from devprof.testing.conformance import replayed, settings_of

    recording = load(path)
    settings = settings_of(recording)
    return _Run(*replayed(recording, faults), settings, f"{recording.plugin}, recorded")


def _save(recording: Any, path: Path) -> None:
    from devprof.replay import save

    save(recording, path)
    size = f"{path.stat().st_size:,} bytes"
    typer.echo(f"{path}: {len(recording.sessions)} sessions of {recording.plugin}, {size}", err=True)


def _print(report: Any, plugin: str, run: _Run) -> None:
    for line in report.lines():
        typer.echo(line)
    if run.without_torch:
        typer.echo(f"torch: not tried, because {run.without_torch}")
    if not run.workload:
        typer.echo(f"{plugin} has no workload: give one with --workload, or an entry point of group devprof.workloads")


def _explain(numbers: list[str]) -> None:
    from devprof.testing.conformance import explanation

    typer.echo("\n\n".join(explanation(check) for check in _chosen(numbers)))


def _chosen(only: list[str]) -> list[Any]:
    from devprof.testing.conformance import CHECKS

    wanted = [number.upper() for number in only]
    unknown = [number for number in wanted if not any(check.number.startswith(number) for check in CHECKS)]
    if unknown:
        raise UsageError(f"there is no check {', '.join(unknown)}; they are {CHECKS[0].number} to {CHECKS[-1].number}")
    return [check for check in CHECKS if not wanted or check.number.startswith(tuple(wanted))]


def _hosts(host: Host, bench: Any) -> tuple[list[str], str]:
    """Return the hosts to try, and why torch, where it was asked for, is none of them."""
    from devprof.testing.conformance import without_torch

    if host is Host.PYTHON:
        return ["python"], ""
    profiler = bench.subject.profiler
    if profiler is not None:
        name_unnamed(profiler.capabilities.torch_device)
    reason = without_torch(bench)
    if not reason:
        return ["torch"] if host is Host.TORCH else ["python", "torch"], ""
    if host is Host.TORCH:
        raise UsageError(f"the plugin cannot be tried under torch: {reason}")
    return ["python"], reason


def _attribute(path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"workload {path!r} cannot be imported: {error}; expected 'module:attribute'") from error
