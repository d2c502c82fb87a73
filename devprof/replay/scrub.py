"""Take out of a recording what belongs to one machine or one user: dates, thread ids, addresses, paths, names.

What stays is what makes a trace: durations, order, ids, and the names that the backend gave. A text is changed only where a
path, the host's name or the user's name stands in it. Names of the user's own ranges are numbered.
"""

from __future__ import annotations

import getpass
import itertools
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.contract import HOST_CLOCK, ClockSample
from devprof.model import ActivityBatch, DeviceInfo, ResourceInfo
from devprof.replay.recording import AXIS_NS, HostRanges, RecordedSession, Recording

__all__ = ["scrubbed"]

_PATH = re.compile(
    r"(?<![\w/.:<-])(?:/[\w.+@~-]+){2,}/?|\b[A-Za-z]:\\(?:[\w .+@~-]+\\)*[\w.+@~-]*|(?<!\w)~/[\w./+@~-]+"
)
_FAR = 2**62
_SHORTEST = 3
"""Letters of a host or user name that are looked for; a shorter one would be found in words."""

_STRANGE_THREAD = 2**22
"""Above every thread id of the system: ids that no recorded thread has are numbered from here."""

Text = Callable[[str], str]


def scrubbed(recording: Recording, *, keep_texts: bool = False) -> Recording:
    """Return a recording on its own time axis, with threads and addresses numbered.

    Args:
        recording: with Unix times and the system's ids.
        keep_texts: leave texts as they are.
    """
    shift = _shift_of(recording)
    threads = _numbered(_threads(recording))
    addresses = _numbered(one.address for session in recording.sessions for one in session.reports)
    text: Text = str if keep_texts else _cleaner()
    names = None if keep_texts else _numbered_names(recording)
    calls = [
        replace(
            call,
            start_ns=call.start_ns + shift,
            end_ns=call.end_ns + shift,
            thread_id=threads[call.thread_id],
            failed=text(call.failed),
        )
        for call in recording.calls
    ]
    sessions = [_session(session, shift, threads, addresses, text, names) for session in recording.sessions]
    capabilities = replace(recording.capabilities, description=text(recording.capabilities.description))
    return replace(recording, sessions=sessions, calls=calls, capabilities=capabilities)


def _shift_of(recording: Recording) -> int:
    stamps = [hook.start_ns for session in recording.sessions for hook in session.hooks]
    stamps += [call.start_ns for call in recording.calls]
    return AXIS_NS - min(stamps, default=AXIS_NS)


def _threads(recording: Recording) -> Iterator[int]:
    yield from (call.thread_id for call in recording.calls)
    for session in recording.sessions:
        yield from session.host.thread_id.tolist()
        yield from (push.thread_id for push in session.pushes)
        yield from (report.thread_id for report in session.reports)


def _numbered(values: Iterable[int]) -> dict[int, int]:
    numbers = {0: 0}
    for value in values:
        numbers.setdefault(value, len(numbers))
    return numbers


def _numbered_names(recording: Recording) -> dict[str, str]:
    pairs = ((session.host.names, session.host.is_user.tolist()) for session in recording.sessions)
    users = dict.fromkeys(name for names, user in pairs for name, mine in zip(names, user, strict=True) if mine)
    return {name: f"range {number}" for number, name in enumerate(users, start=1)}


def _session(
    session: RecordedSession,
    shift: int,
    threads: dict[int, int],
    addresses: dict[int, int],
    text: Text,
    names: dict[str, str] | None,
) -> RecordedSession:
    def at(time_ns: int) -> int:
        return time_ns + shift if time_ns and abs(time_ns) < _FAR else time_ns

    return replace(
        session,
        hooks=[
            replace(one, start_ns=at(one.start_ns), end_ns=at(one.end_ns), failed=text(one.failed))
            for one in session.hooks
        ],
        said={hook: _said(value, text) for hook, value in session.said.items()},
        samples=[ClockSample(at(s.host_before_ns), s.device_ticks, at(s.host_after_ns)) for s in session.samples],
        batches=[_batch(batch, shift, threads, text) for batch in session.batches],
        device_infos=[_place(info, text) for info in session.device_infos],
        resource_infos=[_place(info, text) for info in session.resource_infos],
        dropped=[(count, text(reason)) for count, reason in session.dropped],
        pushes=[replace(one, at_ns=at(one.at_ns), thread_id=threads[one.thread_id]) for one in session.pushes],
        reports=[
            replace(one, at_ns=at(one.at_ns), thread_id=threads[one.thread_id], address=addresses[one.address])
            for one in session.reports
        ],
        window_start_ns=at(session.window_start_ns),
        window_end_ns=at(session.window_end_ns),
        host=_host(session.host, shift, threads, text, names),
    )


def _host(
    host: HostRanges, shift: int, threads: dict[int, int], text: Text, names: dict[str, str] | None
) -> HostRanges:
    mine = host.is_user.tolist()
    return HostRanges(
        tuple(
            text(name) if names is None or not is_mine else names[name]
            for name, is_mine in zip(host.names, mine, strict=True)
        ),
        host.id,
        np.array([threads[thread] for thread in host.thread_id.tolist()], np.int64),
        host.start_ns + shift,
        host.end_ns + shift,
        host.is_user,
    )


def _batch(batch: ActivityBatch, shift: int, threads: dict[int, int], text: Text) -> ActivityBatch:
    strange = itertools.count(_STRANGE_THREAD + sum(number > _STRANGE_THREAD for number in threads.values()))
    for thread in np.unique(batch.thread_id).tolist():
        if thread not in threads:
            threads[thread] = next(strange)
    found, at = np.unique(batch.thread_id, return_inverse=True)
    numbers = np.array([threads[thread] for thread in found.tolist()], np.int64)[at] if len(found) else batch.thread_id
    on_host = batch.clock == HOST_CLOCK
    return replace(
        batch,
        strings=tuple(map(text, batch.strings)),
        thread_id=numbers,
        start=_moved(batch.start, shift) if on_host else batch.start,
        end=_moved(batch.end, shift) if on_host else batch.end,
    )


def _moved(times: npt.NDArray[np.int64], shift: int) -> npt.NDArray[np.int64]:
    is_time = (times != 0) & (np.abs(times) < _FAR)
    return np.where(is_time, times + np.int64(shift), times)


def _place(info: Any, text: Text) -> Any:
    changed: dict[str, Any] = {"name": text(info.name)}
    if isinstance(info, DeviceInfo):
        facts = {key: text(value) if isinstance(value, str) else value for key, value in info.properties.items()}
        changed |= {"label": text(info.label), "properties": facts}
    assert isinstance(info, DeviceInfo | ResourceInfo)
    return replace(info, **changed)


def _said(value: Any, text: Text) -> Any:
    """Clean the texts of an encoded value; its marks stay."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [_said(item, text) for item in value]
    if isinstance(value, dict):
        return {mark: _said(content, text) if mark != "$TraceStatus" else content for mark, content in value.items()}
    return value


def _cleaner() -> Text:
    """Return a function that takes paths, the host's name and the user's name out of a text."""
    words = {"<host>": _asked(socket.gethostname), "<user>": _asked(getpass.getuser)}
    names = {
        mark: re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
        for mark, word in words.items()
        if len(word) >= _SHORTEST
    }

    def clean(given: str) -> str:
        found = _PATH.sub("<path>", given)
        for mark, pattern in names.items():
            found = pattern.sub(mark, found)
        return found

    return clean


def _asked(question: Callable[[], str]) -> str:
    try:
        return question()
    except (OSError, KeyError, ImportError):  # a user without an entry in the system's list
        return ""
