"""The mode of the smoke test that looks at CUPTI's buffers byte by byte, and brings them home for the tests without a GPU."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from smoke_tools import FACTS, check, check_losses, has, of_types, profiled


@dataclass
class Recorded:
    """A profile, and the bytes that it was made of.

    Attributes:
        buffers: valid bytes, as CUPTI completed them.
        layout: how long records are.
        names: text by pointer.
        pushes: each op id as it went out to CUPTI, and the thread.
        window: Unix ns before the profile and after it.
        prof: the profile.
    """

    buffers: list[bytes] = field(default_factory=list)
    layout: Any = None
    names: dict[int, bytes] = field(default_factory=dict)
    pushes: list[tuple[int, int]] = field(default_factory=list)
    window: tuple[int, int] = (0, 0)
    prof: Any = None


def recorded(work: Callable[[], object]) -> Recorded:
    """Profile `work`, and keep what CUPTI completed meanwhile."""
    found = Recorded()
    begun_ns = time.time_ns()
    with _kept_buffers(found), _kept_pushes(found):
        found.prof = profiled(work)
    found.window = begun_ns, time.time_ns()
    return found


@contextlib.contextmanager
def _kept_buffers(found: Recorded) -> Iterator[None]:
    from cuda_cupti import collector

    decode = collector.decode

    def keeping(raw: memoryview, layout: Any, text_at: Any) -> Any:
        found.buffers.append(bytes(raw))
        found.layout = layout

        def read(address: int) -> Any:
            text = text_at(address)
            if text is not None:
                found.names[address] = text
            return text

        return decode(raw, layout, read)

    with mock.patch.object(collector, "decode", keeping):
        yield


@contextlib.contextmanager
def _kept_pushes(found: Recorded) -> Iterator[None]:
    from cuda_cupti.binding import Cupti
    from cuda_cupti.external_ids import OP_KIND

    attempt = Cupti.attempt

    def keeping(self: Cupti, function: str, *arguments: Any) -> int:
        if function == "cuptiActivityPushExternalCorrelationId" and arguments[0] == OP_KIND:
            found.pushes.append((arguments[1], threading.get_native_id()))
        return attempt(self, function, *arguments)

    with mock.patch.object(Cupti, "attempt", keeping):
        yield


def golden() -> None:
    """Check waits and events, and write the buffers in the form of `plugins/cuda_cupti/tests/golden`."""
    if not has("cupy"):
        return
    from cuda_work import CupyWork

    import devprof

    os.environ["DEVPROF_SYNC_EVENTS"] = "1"
    work, launched = CupyWork(), {}
    run = recorded(lambda: launched.update(work.everything(devprof.record_function)))
    FACTS.update(bytes=[len(one) for one in run.buffers], names=len(run.names), pushes=len(run.pushes))
    check("buffers came", bool(run.buffers))
    check_losses(run.prof)
    _check_waits(run.prof.trace)
    if out := os.environ.get("OUT"):
        _write(run, Path(out), sum(launched.values()) - launched["graph"])


def _check_waits(trace: Any) -> None:
    """A wait for an event names the recording that it waits for, and that recording is in the trace."""
    recordings = {trace.item("correlation", one) for one in of_types(trace, "CUDA_EVENT")}
    waits = [(trace.name_of(one), one) for one in of_types(trace, "CUDA_SYNC")]
    FACTS["waits"] = sorted({name for name, _ in waits})
    check("recordings of events are in the trace", bool(recordings))
    for kind in ("Stream Wait Event", "Event Sync"):
        named = {trace.item("wait_on_cuda_event_record_corr_id", one) for name, one in waits if name == kind}
        check(f"{kind}: there is one", bool(named))
        check(f"{kind}: names a recording", sorted(named - recordings, key=str), [])


def _write(run: Recorded, folder: Path, launched: int) -> None:
    from cuda_cupti.access import open_cupti

    from plugins.cuda_cupti.tests.golden_runs import GoldenRun, write_golden_run

    about = {
        "pushes": run.pushes,
        "window": run.window,
        "pid": os.getpid(),
        "main_tid": threading.get_native_id(),
        "launched": launched,
    }
    golden = GoldenRun(tuple(run.buffers), run.layout, run.names, open_cupti().devices[0], about, {})
    write_golden_run(f"smoke_{run.layout.version}", golden, folder)
