"""Run checks, and say what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from devprof.testing.conformance.bench import Bench
from devprof.testing.conformance.needs import lacking
from devprof.testing.conformance.table import Area, Check, CheckFailed, Missing, Undecided

__all__ = ["Finding", "Report", "State", "judge", "run_checks", "settle"]


class State(Enum):
    """What came of a check."""

    HELD = "held"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check under one host.

    Attributes:
        check: the check.
        host: ``"python"`` or ``"torch"``.
        state: held, failed, skipped or undecided.
        expected, found, cause: of a failed check.
        reason: why it was skipped or is undecided.
        because_of: number of the check that keeps this one from being decided.
    """

    check: Check
    host: str
    state: State
    expected: str = ""
    found: str = ""
    cause: str = ""
    reason: str = ""
    because_of: str = ""

    @property
    def text(self) -> str:
        """The finding in words, a line per part."""
        head = f"{self.check.number} {self.check.promise}"
        host = " (torch host)" if self.host == "torch" else ""
        if self.state is not State.FAILED:
            return f"{head}{host} {self.state.value.capitalize()}: {self.reason}" if self.reason else f"{head}{host}"
        parts = (("expected", self.expected), ("found", self.found), ("likely cause", self.cause))
        lines = [f"  {word}: {text}" for word, text in parts]
        return "\n".join([head + host, *lines, f"  explained by: devprof conform --explain {self.check.number}"])

    def as_dict(self) -> dict[str, str]:
        """Return the finding as JSON values."""
        facts = {"number": self.check.number, "name": self.check.name, "host": self.host, "state": self.state.value}
        more = {"expected": self.expected, "found": self.found, "cause": self.cause, "reason": self.reason}
        return {**facts, "promise": self.check.promise, **{key: text for key, text in more.items() if text}}


def judge(check: Check, bench: Bench) -> Finding:
    """Run one check on a bench; whatever the plugin or the workload raises is a finding."""
    host = bench.host

    def failed(expected: str, found: str, cause: str = "") -> Finding:
        return Finding(check, host, State.FAILED, expected, found, cause or check.cause)

    try:
        bench.begin(check.number)
        if missing := _missing(check, bench):
            return Finding(check, host, State.SKIPPED, reason=f"needs {missing}")
        check.run(bench)
    except Missing as missing:
        return Finding(check, host, State.SKIPPED, reason=f"needs {missing}")
    except Undecided as undecided:
        return Finding(check, host, State.UNDECIDED, reason=str(undecided), because_of=undecided.number)
    except CheckFailed as failure:
        return failed(failure.expected, failure.found, failure.cause)
    except Exception as error:  # noqa: BLE001 - of the plugin or the workload; it must not end the run
        return failed("a program that runs", f"it raised {error!r}")
    return Finding(check, host, State.HELD)


def _missing(check: Check, bench: Bench) -> str:
    if bench.subject.profiler is None and check.number != "C102":
        raise Undecided("C102", "devprof left the plugin out")
    return lacking(bench, check.needs)


def settle(finding: Finding, others: Iterable[Finding]) -> Finding:
    """Turn a check that another one is said to keep undecided, although that one holds, into a failure."""
    if finding.state is not State.UNDECIDED:
        return finding
    causes = [one.state for one in others if one.check.number == finding.because_of]
    if not causes or State.FAILED in causes or State.UNDECIDED in causes:
        return finding
    return Finding(
        finding.check, finding.host, State.FAILED, "a check that can be decided", finding.reason, finding.check.cause
    )


@dataclass(frozen=True, slots=True)
class Report:
    """What came of all checks.

    Attributes:
        plugin: the plugin.
        findings: by check, then by host.
        features: what of CUDA's traces the plugin's have, by feature; empty where nothing could be recorded.
    """

    plugin: str
    findings: Sequence[Finding]
    features: dict[str, bool] = field(default_factory=dict)

    def count(self, state: State) -> int:
        """Return how many findings are in a state."""
        return sum(one.state is state for one in self.findings)

    @property
    def passed(self) -> bool:
        """True where nothing failed and nothing is undecided."""
        return not (self.count(State.FAILED) or self.count(State.UNDECIDED))

    @property
    def summary(self) -> str:
        """One line: n of m."""
        tried = len(self.findings) - self.count(State.SKIPPED)
        rest = [f"{self.count(state)} {state.value}" for state in list(State)[1:] if self.count(state)]
        return f"{self.plugin}: {self.count(State.HELD)} of {tried} checks hold{''.join(f', {one}' for one in rest)}"

    def lines(self) -> list[str]:
        """Return the report as lines for a person."""
        lines = []
        for area in Area:
            of_area = [one for one in self.findings if one.check.area is area]
            if of_area:
                held = sum(one.state is State.HELD for one in of_area)
                tried = sum(one.state is not State.SKIPPED for one in of_area)
                lines.append(f"{area.value}: {held} of {tried}")
            lines += [f"  {line}" for one in of_area if one.state is not State.HELD for line in one.text.splitlines()]
        return [*lines, *self.feature_lines(), self.summary]

    def feature_lines(self) -> list[str]:
        """Return which features of CUDA's traces are there, as lines for a person; none where that is not known."""
        if not self.features:
            return []
        there, absent = (
            [name for name, is_there in self.features.items() if is_there is wanted] for wanted in (True, False)
        )
        head = f"Features of CUDA's traces: {len(there)} of {len(self.features)}"
        return [head, f"  there: {', '.join(there)}", *([f"  absent: {', '.join(absent)}"] if absent else [])]

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {
            "plugin": self.plugin,
            "passed": self.passed,
            "counts": {state.value: self.count(state) for state in State},
            "findings": [one.as_dict() for one in self.findings],
            "features": dict(self.features),
        }


def run_checks(
    checks: Iterable[Check], bench_for: Callable[[str], Bench], hosts: Sequence[str] = ("python",)
) -> list[Finding]:
    """Run checks, each under every host that it and the caller name.

    Args:
        checks: which.
        bench_for: gives the bench for a host.
        hosts: ``"python"``, ``"torch"`` or both.
    """
    findings = [judge(check, bench_for(host)) for check in checks for host in hosts if host in check.hosts]
    return [settle(one, findings) for one in findings]
