"""``python -m benchmarks [NAME[=SIZE] ...]``: run benchmarks, print their figures, exit with 1 where a bound is missed.

``analyses=10_000_000`` runs one up to another size than its usual ones, where it takes a size.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable

from benchmarks.setting import Gate

NAMES = (
    "import_time",
    "idle",
    "per_op",
    "session",
    "empty_profile",
    "guard",
    "delivery",
    "ranges",
    "continuous",
    "functions",
    "averages",
    "analyses",
    "stop_to_table",
    "export",
    "loading",
    "perfetto",
    "cupti_decode",
)


def main() -> None:
    """Run the named benchmarks, all of them by default."""
    wanted = sys.argv[1:] or list(NAMES)
    unknown = [name for name in wanted if name.partition("=")[0] not in NAMES]
    if unknown:
        sys.exit(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    missed = 0
    for name in wanted:
        for gate in _gates(*name.split("=", 1)):
            print(gate.line(), flush=True)
            missed += not gate.passed
    sys.exit(1 if missed else 0)


def _gates(name: str, size: str | None = None) -> Iterable[Gate]:
    measure = importlib.import_module(f"benchmarks.{name}").gates
    if size is None:
        found: Iterable[Gate] = measure()
    elif not inspect.signature(measure).parameters:
        sys.exit(f"benchmark {name} takes no size")
    elif not size.replace("_", "").isdigit():
        sys.exit(f"benchmark {name}: expected a number of events, found {size!r}")
    else:
        found = measure(int(size))
    return found


if __name__ == "__main__":
    main()
