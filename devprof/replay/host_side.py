"""The host's side of a recorded session, again: its ranges are opened and closed in their order, on as many threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from devprof import correlation
from devprof.host import RecordFunction, record_function
from devprof.replay.player import Live, Player
from devprof.replay.recording import HostRanges

__all__ = ["run_host_side"]

_OPEN, _REPORT = 0, 1
_FOREVER = 2**63 - 1


class _Range(NamedTuple):
    """A recorded range that is open now."""

    end_ns: int
    block: AbstractContextManager[Any]


def run_host_side(player: Player, *, paced: bool = False) -> int:
    """Run the recorded ops and ranges of the session that is live; return how many there were.

    Each recorded thread is a thread; the one that began first is the caller's. A range that outlives the one around it is
    closed with it.

    Args:
        player: of a `ReplayProfiler` whose session has started.
        paced: let each range begin and end when it did, and all threads run side by side, so that host and device agree; it
            takes as long as the recording. Else nothing waits, and the threads run one after the other: the ranges are as
            short as Python makes them, and the same in every run.
    """
    live = player.live
    if live is None:
        return 0
    host = live.recorded.host
    reporting = {report.thread_id for report in live.recorded.reports}
    first, *others = list(dict.fromkeys([*host.thread_id.tolist(), *sorted(reporting)])) or [0]
    running = [
        threading.Thread(target=_run_thread, args=(player, live, other, paced), name=f"replayed thread {other}")
        for other in others
    ]
    for thread in running if paced else ():
        thread.start()
    _run_thread(player, live, first, paced)
    for thread in running:
        if not paced:
            thread.start()
        thread.join()
    if paced and live.recorded.window_end_ns:
        player.wait_for(live.recorded.window_end_ns)
    return len(host)


def _run_thread(player: Player, live: Live, thread: int, paced: bool) -> None:
    host = live.recorded.host
    live.thread_stands_for(thread)
    stack: list[_Range] = []

    def close(until_ns: int) -> None:
        while stack and stack[-1].end_ns <= until_ns:
            ended = stack.pop()
            if paced:
                player.wait_for(ended.end_ns)
            ended.block.__exit__(None, None, None)

    for at_ns, what, value in _events(live, host, thread):
        close(at_ns)
        if paced:
            player.wait_for(at_ns)
        if what == _REPORT:
            live.report(value)
        else:
            end_ns = min(int(host.end_ns[value]), stack[-1].end_ns if stack else _FOREVER)
            stack.append(_Range(end_ns, _opened(live, host, value)))
    close(_FOREVER)


def _events(live: Live, host: HostRanges, thread: int) -> Iterator[tuple[int, int, Any]]:
    """Yield what happened on a thread, in order: ranges by number, and reports of memory."""
    mine = np.flatnonzero(host.thread_id == thread).tolist()
    events = [(int(host.start_ns[row]), _OPEN, number, row) for number, row in enumerate(mine)]
    reports = [one for one in live.recorded.reports if one.thread_id == thread]
    happened = [(one.at_ns, _REPORT, number, one) for number, one in enumerate(reports)]
    for at_ns, what, _, value in sorted([*events, *happened], key=lambda event: event[:3]):
        yield at_ns, what, value


def _opened(live: Live, host: HostRanges, row: int) -> AbstractContextManager[Any]:
    name = host.names[row]
    block: Any = record_function(name) if host.is_user[row] else RecordFunction(name)
    block.__enter__()
    live.stands_for(int(host.id[row]), correlation.current_op_id())
    return block  # type: ignore[no-any-return]  # both are context managers
