"""`Traced`: a profiled block of a test, with assertions on what its trace holds.

The pytest fixture ``profiled`` makes it. An assertion that fails shows the difference as a small table.
"""

from __future__ import annotations

import fnmatch
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from devprof.analysis import key_averages, overlap
from devprof.errors import UsageError
from devprof.model import ActivityType, Role
from devprof.profiler import profile
from devprof.store import HOST_BACKEND, Trace
from devprof.testing.baselines import Baselines

__all__ = ["Traced"]

_WAITS = (Role.SYNC,)
_CALLS = (Role.LAUNCH, Role.SYNC)
_MOST_ROWS = 12


class Traced:
    """A block under the profiler, as a context manager; then assertions on its trace.

    Example:
        def test_step(profiled):
            with profiled("cpu", "my-npu") as block:
                step()
            block.assert_kernels({"gemm*": 2, "relu": 1})
            block.assert_no_synchronisation()
            block.assert_overlap(at_least=0.5)
            block.assert_device_time("forward", of="step", within=0.1)
    """

    def __init__(self, baselines: Baselines, test: str, *activities: str, **options: Any) -> None:
        """Get ready.

        Args:
            baselines: where device times of earlier runs are kept.
            test: id of the test, for the baselines.
            activities: what to record, as for `devprof.profile`; none: everything.
            options: of `devprof.profile`.
        """
        self._baselines = baselines
        self._test = test
        self._prof = profile(activities=list(activities) or None, **options)
        self._done = False
        self._end_ns = 0

    def __enter__(self) -> Self:
        self._prof.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._end_ns = time.time_ns()
        self._prof.__exit__(*error)
        self._done = True

    @property
    def prof(self) -> profile:
        """The profile, for what no assertion covers."""
        return self._prof

    @property
    def trace(self) -> Trace:
        """The trace of the block.

        Raises:
            UsageError: the block has not ended.
        """
        if not self._done:
            raise UsageError("the block is still being profiled: assert on it behind the `with` statement")
        found: Trace = self._prof.trace
        return found

    # -- assertions ---------------------------------------------------------------------------------------------------

    def assert_kernels(self, expected: int | Mapping[str, int]) -> None:
        """Assert how many kernels ran.

        Args:
            expected: their number; or by name, where ``*`` and ``?`` stand for any letters, and every kernel must be named.
        """
        found = Counter(self._names(ActivityType.CONCURRENT_KERNEL))
        if isinstance(expected, int):
            rows = [(name, "", str(count)) for name, count in found.most_common()]
            _check(found.total() == expected, f"expected {expected} kernels, found {found.total()}", rows)
            return
        rows, wrong, left = [], False, Counter(found)
        for pattern, count in expected.items():
            names = [name for name in found if fnmatch.fnmatchcase(name, pattern)]
            there = sum(left.pop(name, 0) for name in names)
            wrong |= there != count
            rows.append((pattern, str(count), str(there)))
        rows += [(name, "0", str(count)) for name, count in left.items()]
        _check(not wrong and not left, "the kernels differ", rows)

    def assert_no_synchronisation(self, *, allowed: Sequence[str] = ()) -> None:
        """Assert that the host waited for no device inside the block.

        What began after the block is nobody's: torch.profiler waits for its device before it stops.

        Args:
            allowed: names of calls that may wait, such as that of the last one; ``*`` and ``?`` stand for any letters.
        """
        trace = self.trace
        inside = trace.start_ns < self._end_ns
        events = np.flatnonzero(inside & np.isin(trace.activity_type, _of_roles(*_CALLS)))
        waits = np.isin(trace.activity_type, _of_roles(*_WAITS))
        found: Counter[str] = Counter()
        spent_ns: Counter[str] = Counter()
        for event in events.tolist():
            name = trace.name_of(event)
            if (waits[event] or "ynchronize" in name) and not _matches(name, allowed):
                found[name] += 1
                spent_ns[name] += int(trace.end_ns[event] - trace.start_ns[event])
        rows = [(name, "0", f"{count}, {spent_ns[name] / 1e3:.1f} us") for name, count in found.most_common()]
        _check(not found, f"the host waited for a device {found.total()} times", rows)

    def assert_overlap(self, *, at_least: float, of: str = "communication") -> None:
        """Assert which share of the communication, or of the copies, ran while kernels did.

        Args:
            at_least: the share, 0 to 1.
            of: ``"communication"`` or ``"copies"``; where there is none of it, the assertion fails.
        """
        if of not in ("communication", "copies"):
            raise UsageError(f"overlap of {of!r} is not known; expected 'communication' or 'copies'")
        key = "communication" if of == "communication" else "copy"
        devices = [row for row in overlap(self.trace) if row[f"{key}_ns"]]
        rows = [
            (
                str(row["device"]),
                f"{at_least:.0%}",
                f"{row[f'{key}_hidden_share']:.0%} of {row[f'{key}_ns'] / 1e3:.1f} us",
            )
            for row in devices
        ]
        _check(bool(rows), f"there is no {of} in the block", [])
        worst = min(row[f"{key}_hidden_share"] for row in devices)
        _check(worst >= at_least, f"too little of the {of} overlaps with kernels", rows)

    def assert_device_time(self, op: str, *, of: str = "", within: float = 0.1) -> None:
        """Assert that an op's share of the device time is what it was in the baseline, give or take.

        Device time is that of kernels, copies and sets; gaps between them count for nobody. A share is the same on a faster
        device, where a time is not. The baseline is kept in ``devprof_baselines.json`` beside
        the test; ``pytest --devprof-renew-baselines`` writes it.

        Args:
            op: name of the op or range.
            of: another op or range to compare with; by default all device work.
            within: how much it may differ, as a part of the baseline: 0.1 is ten per cent.
        """
        mine_ns = self._device_time_ns(op)
        whole_ns = self._device_time_ns(of) if of else self._all_device_time_ns()
        if not whole_ns:
            _check(False, f"there is no device time in {of or 'the block'}", [(op, "", f"{mine_ns / 1e3:.1f} us")])
        share = mine_ns / whole_ns
        key = f"{self._test} {op}{f' of {of}' if of else ''}"
        before = self._baselines.compare(key, share)
        bounds = f"{1 - within:.2f} to {1 + within:.2f}"
        rows = [("share", f"{before:.3f}", f"{share:.3f}"), ("ratio", bounds, _ratio(share, before))]
        _check(abs(share - before) <= within * before, f"the device time of {op!r} differs from its baseline", rows)

    # -- what there is ------------------------------------------------------------------------------------------------

    def _names(self, *kinds: ActivityType) -> list[str]:
        trace = self.trace
        return [trace.name_of(event) for event in trace.of_type(*kinds).tolist()]

    def _device_time_ns(self, name: str) -> int:
        # the span of a range on a device lasts from its first work to its last, idle time included
        rows = [
            one for one in key_averages(self.trace) if one.device_type == HOST_BACKEND or not one.is_user_annotation
        ]
        found = [one for one in rows if one.key == name]
        if not found:
            known = sorted({one.key for one in rows})[:_MOST_ROWS]
            raise AssertionError(
                f"there is no op or range {name!r} in the trace; there are {', '.join(known) or 'none'}"
            )
        return round(max(one.device_time_total for one in found) * 1000)

    def _all_device_time_ns(self) -> int:
        trace = self.trace
        work = np.flatnonzero(np.isin(trace.activity_type, [int(k) for k in ActivityType if k.is_device_work]))
        return int((trace.end_ns[work] - trace.start_ns[work]).sum())


def _of_roles(*roles: Role) -> npt.NDArray[np.uint8]:
    return np.array([int(kind) for kind in ActivityType if kind.role in roles], np.uint8)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _ratio(share: float, before: float) -> str:
    return f"{share / before:.2f}" if before else "from 0"


def _check(holds: bool, says: str, rows: Sequence[tuple[str, str, str]]) -> None:
    """Raise with a table where something does not hold."""
    __tracebackhide__ = True
    if holds:
        return
    shown = [("", "expected", "found"), *rows[:_MOST_ROWS]] if rows else []
    widths = [max((len(row[column]) for row in shown), default=0) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    if len(rows) > _MOST_ROWS:
        lines.append(f"... and {len(rows) - _MOST_ROWS} more")
    raise AssertionError("\n".join([says, *(f"  {line}" for line in lines)]))
