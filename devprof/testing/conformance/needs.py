"""What a check may need of a plugin or a workload, and how to see whether it is there."""

from __future__ import annotations

from collections.abc import Callable

from devprof.model import ActivityType
from devprof.testing.conformance.bench import Bench
from devprof.testing.conformance.watching import RUNTIME_CALLS

__all__ = ["NEEDS", "lacking"]

Need = tuple[str, Callable[[Bench], bool]]


def _method(name: str, words: str) -> Need:
    return f"a workload with {words}", lambda bench: bench.device.has(name)


def _kind(kind: ActivityType) -> Need:
    return f"a plugin that records {kind.name}", lambda bench: bench.claims(kind)


def _nothing(capture: object) -> None: ...


def _is_real(bench: Bench) -> bool:
    watched = bench.session(_nothing).seen
    domain = watched.said.get("clock_domain")
    return domain is None or not domain.virtual


NEEDS: dict[str, Need] = {
    "workload": ("a workload", lambda bench: bool(bench.device)),
    "kernels": _kind(ActivityType.CONCURRENT_KERNEL),
    "runtime calls": (
        "a plugin that records calls of its runtime, such as PRIVATEUSE1_RUNTIME",
        lambda bench: any(bench.claims(kind) for kind in RUNTIME_CALLS),
    ),
    "real clock": ("a device clock that runs with the host's", _is_real),
    "copy": _method("copy", "copy(n_bytes)"),
    "set": _method("set", "set(n_bytes)"),
    "graph": _method("graph", "graph(name, n)"),
    "memory": _method("allocate", "allocate(n_bytes) and free(handle)"),
    "device calls": _method("device_calls", "device_calls()"),
    "loss": _method("lose", "lose(n)"),
    "flush": (
        "a plugin that hands over while it records (flush_trace)",
        lambda bench: bench.session(_nothing).seen.flushes,
    ),
    "failure": _method("fail", "fail()"),
    "exact names": (
        "a workload with exact_names = True",
        lambda bench: bool(bench.device.fact("exact_names", False)),
    ),
    "two devices": ("a workload with devices = 2 or more", lambda bench: bench.device.fact("devices", 1) >= 2),
    "two streams": ("a workload with streams = 2 or more", lambda bench: bench.device.fact("streams", 1) >= 2),
    "serial streams": (
        "a device whose streams work in order",
        lambda bench: bool(bench.device.fact("serial_streams", True)),
    ),
    "pushes": ("a plugin that is told of each op (CorrelationAccess other than READ)", lambda bench: bench.pushes),
    "stubs": ("a plugin with stubs for torch's legacy profiler", lambda bench: bench.subject.stubs is not None),
    "importable": (
        "a plugin that a fresh interpreter can import: an installed one, or 'module:attribute'",
        lambda bench: bool(bench.subject.importable),
    ),
}
"""What a check may need, by name: in words, and the question whether it is there."""


def lacking(bench: Bench, needs: tuple[str, ...]) -> str:
    """Return, in words, the first thing that is not there; empty where all is."""
    return next((words for words, there in (NEEDS[need] for need in needs) if not there(bench)), "")
