"""What the modes of the smoke test share: running one, noting facts and checks, profiling, and reading the trace."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import json
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

FACTS: dict[str, Any] = {}
CHECKS: dict[str, Any] = {}
MODULES = ("smoke_modes", "smoke_golden", "smoke_beside", "smoke_costs")
LAST_WORDS_S = 2.0
"""So long before its limit a mode says where it hangs."""


def run(mode: str, limit_s: float) -> None:
    """Run one mode, and print what is known of it after each check and at its end, a line of JSON each time."""
    # it stays on: the end of the process may hang, too
    faulthandler.dump_traceback_later(max(limit_s - LAST_WORDS_S, 1.0))
    try:
        modules = [importlib.import_module(name) for name in MODULES]
        next(getattr(module, mode) for module in modules if hasattr(module, mode))()
    except BaseException:  # noqa: BLE001  # a report of it is what this is for
        say(error=traceback.format_exc()[-2500:])
    else:
        say()


def say(**more: Any) -> None:
    """Print all facts and checks so far."""
    print("\n" + json.dumps({"facts": FACTS, "checks": CHECKS, **more}, default=str), flush=True)


def check(name: str, found: Any, expected: Any = True) -> None:
    """Note whether what was found is what was expected; what failed once stays failed."""
    if CHECKS.get(name, True) is True:
        CHECKS[name] = True if found == expected else f"expected {expected!r}, found {found!r}"
    say()


def has(module: str) -> bool:
    """Say whether a module can be imported; where not, why is a fact."""
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001  # a module that is there and broken raises anything
        FACTS.setdefault("missing", {})[module] = f"{type(error).__name__}: {error}"[:600]
        return False
    return True


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


def check_losses(prof: Any) -> None:
    """Check that the capture lost nothing and that nothing in it went wrong."""
    ledger = account(prof)
    check(
        "nothing lost, nothing wrong",
        [ledger.lost, ledger.lost_unknown, ledger.errors, ledger.failures],
        [0, [], [], []],
    )


@contextlib.contextmanager
def subscription(cupti: Any) -> Iterator[int]:
    """Hold a subscription, as a tool such as Nsight does; gives what CUPTI answered."""
    from cuda_cupti import coexistence

    handle = ctypes.c_void_p()
    callback = ctypes.cast(coexistence._ignore, ctypes.c_void_p)
    code = cupti.attempt("cuptiSubscribe", ctypes.byref(handle), callback, None)
    try:
        yield code
    finally:
        if code == 0:
            cupti.attempt("cuptiUnsubscribe", handle)
