"""What the modes of the smoke test share: running one, noting facts and checks, profiling, and reading the trace."""

from __future__ import annotations

import contextlib
import importlib
import json
import traceback
import warnings
from collections.abc import Callable
from typing import Any

FACTS: dict[str, Any] = {}
CHECKS: dict[str, Any] = {}


def run(mode: str) -> None:
    """Run one mode, and print what came of it as one line of JSON."""
    result: dict[str, Any] = {"facts": FACTS, "checks": CHECKS}
    try:
        modules = [importlib.import_module(name) for name in ("smoke_modes", "smoke_beside")]
        next(getattr(module, mode) for module in modules if hasattr(module, mode))()
    except BaseException:  # noqa: BLE001  # a report of it is what this is for
        result["error"] = traceback.format_exc()[-2500:]
    print("\n" + json.dumps(result, default=str), flush=True)


def check(name: str, found: Any, expected: Any = True) -> None:
    """Note whether what was found is what was expected."""
    CHECKS[name] = True if found == expected else f"expected {expected!r}, found {found!r}"


def has(module: str) -> bool:
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
        return True
    FACTS["missing"] = module
    return False


def register_plugin() -> None:
    """Take the plugin in from the checkout, unless it is installed."""
    import cuda_cupti.plugin

    from devprof import registry

    if "cuda" not in [one.name for one in registry.discover().profilers]:
        registry.register(cuda_cupti.plugin, "cuda")


def profiled(work: Callable[[], object], *, cpu: bool = True, **options: Any) -> Any:
    """Profile `work` without torch; devprof's warnings are kept as facts."""
    import devprof

    register_plugin()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof = devprof.profile(activities=[*(["cpu"] if cpu else []), "cuda"], host="python", **options)
        with prof:
            work()
    if said := [str(one.message)[:600] for one in caught]:
        FACTS.setdefault("warned", []).extend(said)
    return prof


def account(prof: Any) -> Any:
    return prof.report.ledgers["cuda"]


def of_types(trace: Any, *names: str) -> list[int]:
    from devprof.model import ActivityType

    found: list[int] = trace.of_type(*(ActivityType[name] for name in names)).tolist()
    return found
