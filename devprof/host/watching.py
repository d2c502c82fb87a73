"""Ranges that others than the recorder want to know about: callbacks, and mirrors of the stack of ranges."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from devprof.host.callbacks import CALLBACKS, CallbackHandle, RangeEvent
from devprof.host.entering import begin
from devprof.host.gate import GATE, OpenRange, next_ids
from devprof.host.leaving import UNRECORDED, Extra
from devprof.host.queues import Block
from devprof.host.scopes import RecordScope

if TYPE_CHECKING:
    from devprof.host.mirrors import Mirrors
    from devprof.host.queues import ThreadQueues

__all__ = ["Watch", "Watchable", "Watched", "arrange"]


class Watchable(OpenRange):
    """A range that can say what it is."""

    __slots__ = ()

    @property
    def scope(self) -> RecordScope:
        """Its kind."""
        raise NotImplementedError

    @property
    def label(self) -> Hashable:
        """What it is called, as in `Queue.labels`."""
        raise NotImplementedError

    def event(self) -> RangeEvent:
        """Return what a callback with `needs_inputs` learns of it."""
        raise NotImplementedError

    def note(self, block: Block) -> None:
        """Put down, in the block's queue, what only some ranges have."""


class Watched:
    """Stands in `GATE.queues` for a session's queues where entering takes more than recording.

    Attributes:
        block: None, by which a range knows it from queues.
        recording: the session's queues, or None where nobody records ranges.
        mirrors: the session's mirrors, or None.
    """

    __slots__ = ("mirrors", "recording")

    block = None

    def __init__(self, recording: ThreadQueues | None, mirrors: Mirrors | None) -> None:
        self.recording = recording
        self.mirrors = mirrors

    def enter(self, entered: Watchable) -> None:
        """Enter a range: record it if somebody records, then tell the callbacks, then the mirrors."""
        is_user = entered.scope is RecordScope.USER_SCOPE
        block = UNRECORDED
        if self.recording is not None:
            block = begin(entered, self.recording, entered.label, is_user)
            entered.note(block)
        else:
            entered.block, entered.token = UNRECORDED, None
            entered.id = entered.user_id = next_ids()
            entered.at, entered.gone = 0, False
        watch = Watch(entered, is_user, self.mirrors if self.recording is not None else None)
        entered.token = Extra(entered.token, watch)
        try:
            watch.enter()
        finally:  # also where a callback was interrupted from the keyboard: then the range is left again by its caller
            if block is not UNRECORDED:
                block.starts[entered.at] = block.clock()


class Watch:
    """One entered range: the callbacks that saw it and what they gave back, and whether mirrors have it."""

    __slots__ = ("_entered", "_event", "_is_user", "_mirrors", "_seen")

    def __init__(self, entered: Watchable, is_user: bool, mirrors: Mirrors | None) -> None:
        self._entered = entered
        self._is_user = is_user
        self._mirrors = mirrors
        self._seen: list[tuple[CallbackHandle, RangeEvent, Any]] = []

    def enter(self) -> None:
        """Tell the callbacks that want to know, in the order of their registration, and the mirrors."""
        scope = self._entered.scope
        wanting = [handle for handle in CALLBACKS.here() if handle.wants(scope)]
        if wanting:
            full = self._entered.event()
            plain = full.without_inputs() if full.inputs else full
            for handle in wanting:
                event = full if handle.needs_inputs else plain
                is_seen, state = handle.call_enter(event)
                if is_seen:
                    self._seen.append((handle, event, state))
        if self._mirrors is not None:
            self._mirrors.enter(self._entered.id, self._is_user)

    def leave(self) -> None:
        """Tell the mirrors, and the callbacks in reverse order."""
        if self._mirrors is not None:
            self._mirrors.leave(self._entered.id)
        while self._seen:
            handle, event, state = self._seen.pop()
            handle.call_exit(event, state)


def arrange() -> None:
    """Set `GATE.queues` by who records and who watches now. Called under the gate's lock."""
    recording, mirrors = GATE.recording, GATE.mirrors
    is_mirrored = recording is not None and mirrors is not None
    GATE.queues = Watched(recording, mirrors) if CALLBACKS or is_mirrored else recording


CALLBACKS.changed = arrange
