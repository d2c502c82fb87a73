"""Places and rows of a Chrome trace: what is a host and what a device, by the events that stand there and by their labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityType
from devprof.store.places import Place, PlaceKind, Row
from devprof.store.readers.json_times import whole_number
from devprof.store.readers.kineto_kinds import ON_DEVICE, ON_HOST

__all__ = ["Tracks"]

Number = int | float | str | bool | None

_FIRST_NAMED = 2**30
"""Numbers from here on stand for processes and threads that the file names by text."""
_DEVICE_LABEL = re.compile(r"(GPU|XPU|MTIA|HPU|NPU|DEVICE)\b", re.IGNORECASE)
_BACKENDS = (("CUDA", "cuda"), ("XPU", "xpu"), ("MTIA", "mtia"), ("HPU", "hpu"), ("PRIVATEUSE1", "privateuseone"))
"""Backend by what the names of the trace's types begin with; the first one holds."""
_NOTHING = np.zeros(3, dtype=np.int64)


class Tracks(dict[tuple[Number, Number], int]):
    """Numbers of tracks, by process and thread as the file writes them; a new pair gets the next number."""

    def __init__(self) -> None:
        super().__init__()
        self._facts: dict[tuple[Number, Number], dict[str, Any]] = {}
        self._named: dict[str, int] = {}

    def __missing__(self, key: tuple[Number, Number]) -> int:
        self[key] = number = len(self)
        return number

    def describe(self, name: str, pid: Number, tid: Number, args: Mapping[str, Any]) -> bool:
        """Take what a metadata event says, and say whether it was about a place or a row."""
        keys = {"process_name": "name", "process_labels": "labels", "process_sort_index": "sort_index"}
        keys |= {"thread_name": "name", "thread_sort_index": "sort_index"}
        if name not in keys:
            return False
        key = (pid, None) if name.startswith("process") else (pid, tid)
        if key[1] is not None:
            self[key]
        self._facts.setdefault(key, {})[keys[name]] = args.get(keys[name])
        return True

    def resolve(
        self,
        track: npt.NDArray[np.int64],
        types: npt.NDArray[np.uint8],
        undecided: npt.NDArray[np.bool_],
        properties: Sequence[Any],
        backends: Mapping[str, Any],
    ) -> tuple[list[Place], list[Row], npt.NDArray[np.int32]]:
        """Return the places, the rows, and the row of each event.

        Args:
            track: (n,) number of each event's track.
            types: (n,) its type.
            undecided: (n,) whether the type says nothing of where it stands.
            properties: the file's ``deviceProperties``.
            backends: names of backends by process number, where the file says so.
        """
        tracks = list(self)
        pids = {pid: position for position, pid in enumerate(dict.fromkeys(pid for pid, _ in tracks))}
        pid_of_track = np.array([pids[pid] for pid, _ in tracks] or [0], dtype=np.int64)
        on = np.where(undecided, 0, np.where(ON_DEVICE[types], 2, np.where(ON_HOST[types], 1, 0)))
        counts = np.zeros((len(pids) + 1, 3), dtype=np.int64)
        np.add.at(counts, (pid_of_track[track], on), 1)
        by_pid = {pid: self._is_device(pid, counts[at], backends) for pid, at in pids.items()}
        device = np.where(on == 0, np.array([*by_pid.values(), False])[pid_of_track[track]], on == 2)
        # a number that a host and a device share makes two places
        found, which = np.unique(track * 2 + device, return_inverse=True)
        used = [(tracks[number // 2], bool(number % 2)) for number in found.tolist()]
        seen = {key for key, _ in used}
        named = [key for key in self._facts if key not in seen]
        used += [
            ((pid, tid), by_pid.get(pid, self._is_device(pid, _NOTHING, backends)))
            for pid, tid in named
            if tid is not None
        ]
        made = _Places(self, properties, backends, types)
        rows = [self._row(made.place(pid, is_device), pid, tid) for (pid, tid), is_device in used]
        for pid, tid in named:
            if tid is None and pid not in made.pids:
                made.place(pid, self._is_device(pid, _NOTHING, backends))
        return made.places, rows, which.astype(np.int32)

    def _is_device(self, pid: Number, counts: npt.NDArray[np.int64], backends: Mapping[str, Any]) -> bool:
        """Say whether a process number is a device's, for events that don't tell."""
        if counts[1] or counts[2]:
            return bool(counts[2] > 0 and counts[1] == 0)
        return str(pid) in backends or bool(_DEVICE_LABEL.match(_text(self._facts.get((pid, None), {}).get("labels"))))

    def place(self, pid: Number, is_device: bool, properties: Mapping[Any, Any], backend: str) -> Place:
        """Return the place of a process number.

        Args:
            pid: the number, as the file writes it.
            is_device: whether it is a device's.
            properties: of the devices, by their number.
            backend: whose device it is.
        """
        facts = self._facts.get((pid, None), {})
        label = _text(facts.get("labels"))
        if is_device and label == "CPU":  # the label of the process that has the device's number
            facts, label = {}, ""
        number = self._number(pid)
        name = _text(facts.get("name")) or (pid if isinstance(pid, str) and whole_number(pid) is None else "")
        sort_index = whole_number(facts.get("sort_index"))
        if not is_device:
            return Place(number, PlaceKind.HOST, name, label, sort_index)
        return Place(number, PlaceKind.DEVICE, name, label, sort_index, backend, properties.get(number, {}))

    def _row(self, place: int, pid: Number, tid: Number) -> Row:
        facts = self._facts.get((pid, tid), {})
        name = _text(facts.get("name")) or (tid if isinstance(tid, str) and whole_number(tid) is None else "")
        return Row(place, self._number(tid), name, whole_number(facts.get("sort_index")))

    def _number(self, written: Number) -> int:
        if written is None:
            return 0
        number = whole_number(written)
        if number is None:
            number = self._named.setdefault(str(written), _FIRST_NAMED + len(self._named))
        return number


class _Places:
    """Places, as rows ask for them."""

    def __init__(
        self, tracks: Tracks, properties: Sequence[Any], backends: Mapping[str, Any], types: npt.NDArray[np.uint8]
    ) -> None:
        self._tracks = tracks
        self._properties = {one.get("id"): one for one in properties if isinstance(one, dict) and _is_id(one.get("id"))}
        self._backends = backends
        self._guessed = _backend(types)
        self._numbers: dict[tuple[Number, bool], int] = {}
        self.places: list[Place] = []

    @property
    def pids(self) -> set[Number]:
        """The process numbers that have a place."""
        return {pid for pid, _ in self._numbers}

    def place(self, pid: Number, is_device: bool) -> int:
        """Return the index of a process number's place, adding it if it is new."""
        if (pid, is_device) not in self._numbers:
            self._numbers[pid, is_device] = len(self.places)
            backend = self._backends.get(str(pid), self._guessed)
            self.places.append(self._tracks.place(pid, is_device, self._properties, str(backend)))
        return self._numbers[pid, is_device]


def _is_id(value: object) -> bool:
    return isinstance(value, int | str)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _backend(types: npt.NDArray[np.uint8]) -> str:
    """Guess the backend of the devices from the types of the calls that drive them."""
    names = [ActivityType(number).name for number in np.unique(types).tolist()]
    found = [backend for prefix, backend in _BACKENDS if any(name.startswith(prefix) for name in names)]
    return found[0] if found else "cuda"
