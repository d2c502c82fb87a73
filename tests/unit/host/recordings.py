"""A clock that counts its readings, and recordings in a form that reads well in a comparison."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from devprof.host import HostOptions, HostRecorder, HostRecording
from devprof.model import ActivityBatch


class Ticks:
    """A clock that is one tick further at each reading, from 1 on."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def __call__(self) -> int:
        return next(self._count)


class Range(NamedTuple):
    """A recorded range, its relatives by name."""

    name: str
    start: int
    end: int
    parent: str = ""
    user: str = ""
    items: dict[str, object] = {}  # noqa: RUF012  # a default that nobody changes


class Session:
    """A recorder with a clock of its own, and its recording once it is stopped."""

    def __init__(self, recorder: HostRecorder, ticks: Callable[[], int]) -> None:
        self.recorder = recorder
        self.ticks = ticks
        self.recording: HostRecording | None = None

    def stop(self) -> HostRecording:
        self.recording = self.recorder.stop()
        return self.recording

    @property
    def result(self) -> HostRecording:
        assert self.recording is not None, "the session is not stopped"
        return self.recording

    @property
    def ranges(self) -> list[Range]:
        return ranges_of(self.result.ranges)


@contextmanager
def recording(mirrors: Any = (), clock: Callable[[], int] | None = None, **options: Any) -> Iterator[Session]:
    """Record the body; the recorder is stopped at its end unless that was done inside."""
    ticks = clock or Ticks()
    session = Session(HostRecorder(HostOptions(**options), clock_ticks=ticks, mirrors=mirrors), ticks)
    session.recorder.start()
    try:
        yield session
    finally:
        if session.recording is None:
            session.stop()


def ranges_of(batch: ActivityBatch) -> list[Range]:
    activities = batch.activities()
    names = {activity.id: activity.activity_name for activity in activities} | {0: ""}
    return [
        Range(a.activity_name, a.start_ns, a.end_ns, names[a.linked], names[a.linked_user], dict(a.metadata))
        for a in activities
    ]


def run_in_thread(function: Callable[[], object], name: str = "worker") -> None:
    """Run on a thread of its own, and raise here what it raised there."""
    raised: list[BaseException] = []

    def body() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001  # handed to the caller
            raised.append(error)

    thread = threading.Thread(target=body, name=name)
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive()
    if raised:
        raise raised[0]
