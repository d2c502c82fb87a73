"""What `import devprof` adds to a bare interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.setting import Gate

__all__ = ["gates"]

ROUNDS = 15


def _start_ms(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return 1e3 * (time.perf_counter() - began)


def gates() -> list[Gate]:
    """Measure both in alternation and return the difference of medians."""
    took: dict[str, list[float]] = {"pass": [], "import devprof": []}
    for _ in range(ROUNDS):
        for code, values in took.items():
            values.append(_start_ms(code))
    bare, ours = (statistics.median(values) for values in took.values())
    return [Gate("import devprof, over a bare interpreter", ours - bare, 40, "ms", f"{ours:.0f} - {bare:.0f} ms")]
