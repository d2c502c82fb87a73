"""The conformance kit's workload, recorded and replayed: what the kit had a device do, and what it answered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from devprof import correlation
from devprof.replay.player import Live, Player, ReplayedError
from devprof.replay.recorder import Recorder
from devprof.replay.recording import WorkCall
from devprof.store import Trace

__all__ = ["NOT_RECORDED", "RecordingWorkload", "ReplayWorkload", "scope_of", "words_of"]

_METHODS = (
    "launch",
    "synchronize",
    "copy",
    "set",
    "graph",
    "allocate",
    "free",
    "device_calls",
    "lose",
    "fail",
)
_FACTS = ("devices", "streams", "exact_names", "serial_streams")

NOT_RECORDED = frozenset({"C903", "C904"})
"""Checks about what a plugin's code leaves behind: a recording says nothing of it, and making one leaves something."""


def scope_of(number: str, host: str) -> str:
    """Return the scope of a check under a host."""
    return f"{number} {host}"


def words_of(method: str, args: tuple[Any, ...], places: dict[str, Any]) -> str:
    """Return the arguments of a call as text; a handle that `allocate` gave is none that another run could give."""
    shown = () if method == "free" else args
    return ", ".join([*map(repr, shown), *(f"{key}={value!r}" for key, value in sorted(places.items()))])


class RecordingWorkload:
    """Passes every call on to a workload, and has a `Recorder` note it."""

    def __init__(self, workload: Any, recorder: Recorder) -> None:
        """Stand before a workload."""
        self._workload = workload
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._workload, name)
        if name == "on_torch":
            return lambda: RecordingWorkload(found(), self._recorder)
        if name not in _METHODS:
            return found
        return lambda *args, **places: self._noted(name, found, args, places)

    def begin_check(self, number: str, host: str) -> None:
        """Note which check begins."""
        self._recorder.scope = scope_of(number, host)
        self._recorder.is_paused = number in NOT_RECORDED

    def note_trace(self, trace: Trace, host: str) -> None:
        """Note the host's side where launches are made by ops of its own, inside of those that the kit opens."""
        if host == "torch" and not self._recorder.is_paused:
            self._recorder.note_host(trace)

    @property
    def facts(self) -> dict[str, Any]:
        """What the workload has, for the recording."""
        methods = [name for name in _METHODS if callable(getattr(self._workload, name, None))]
        facts = {name: getattr(self._workload, name) for name in _FACTS if hasattr(self._workload, name)}
        return {"methods": methods, **facts}

    def _noted(self, method: str, call: Callable[..., Any], args: tuple[Any, ...], places: dict[str, Any]) -> Any:
        recorder, failed, result = self._recorder, "", None
        ids, thread, began_ns = correlation.current(), threading.get_native_id(), recorder.now_ns()
        try:
            result = call(*args, **places)
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
            raise
        finally:
            words = words_of(method, args, places)
            plain = result if isinstance(result, int | float | str) else None
            ended_ns = recorder.now_ns()
            recorder.note_call(WorkCall(recorder.scope, method, words, *ids, thread, began_ns, ended_ns, plain, failed))
        return result


class ReplayWorkload:
    """A workload whose device is a recording: calls take as long, and return or raise what they did when they were recorded."""

    def __init__(self, player: Player) -> None:
        """Work beside the sessions of a player."""
        self._player = player
        self._facts = player.recording.workload

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("_facts", {})
        if name in _METHODS and name in facts.get("methods", ()):
            return lambda *args, **places: self._replayed(name, args, places)
        if name in _FACTS and name in facts:
            return facts[name]
        raise AttributeError(name)

    def begin_check(self, number: str, host: str) -> str:
        """Go to the check's part of the recording; return what it lacks, in words."""
        return self._player.enter(scope_of(number, host))

    def _replayed(self, method: str, args: tuple[Any, ...], places: dict[str, Any]) -> Any:
        player = self._player
        call = player.take(method, words_of(method, args, places))
        player.wait_for(call.start_ns)
        if player.live is not None:
            _stand_in(player.live, call)
        player.report_memory(call.start_ns, call.end_ns)
        if call.failed:
            raise ReplayedError(call.failed)
        player.wait_for(call.end_ns)
        return call.result


def _stand_in(live: Live, call: WorkCall) -> None:
    ids = correlation.current()
    live.stands_for(call.op_id, ids.op_id)
    live.stands_for(call.user_id, ids.user_id)
    live.thread_stands_for(call.thread_id)
