"""``python -m benchmarks [NAME ...]``: run benchmarks, print their figures, exit with 1 where a bound is missed."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "import_time",
    "idle",
    "per_op",
    "session",
    "empty_profile",
    "delivery",
    "ranges",
    "functions",
    "averages",
    "analyses",
    "stop_to_table",
    "export",
    "loading",
    "perfetto",
)


def main() -> None:
    """Run the named benchmarks, all of them by default."""
    wanted = sys.argv[1:] or list(NAMES)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        sys.exit(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    missed = 0
    for name in wanted:
        for gate in importlib.import_module(f"benchmarks.{name}").gates():
            print(gate.line(), flush=True)
            missed += not gate.passed
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
