"""Args that follow from an event's ids and its row, under Kineto's keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk, Field, number_field
from devprof.model import ActivityType, Role
from devprof.store import PlaceKind, Trace

__all__ = ["HAS_LAUNCH", "HAS_NO_OP", "HAS_OWN_ID", "LaunchFields"]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_IDS_OF_THEIR_OWN = {Role.OP, Role.ANNOTATION}
_LAUNCHED = {Role.LAUNCH, Role.KERNEL, Role.COPY, Role.SET, Role.SYNC}
_ON_A_STREAM = {Role.KERNEL, Role.COPY, Role.SET, Role.SYNC}
_PYTHON = {ActivityType.PYTHON_FUNCTION}


def _table(roles: set[Role]) -> Mask:
    table = np.zeros(256, dtype=np.bool_)
    table[[int(kind) for kind in ActivityType if kind.role in roles]] = True
    return table


HAS_OWN_ID = _table(_IDS_OF_THEIR_OWN)
HAS_LAUNCH = _table(_LAUNCHED)
_HAS_STREAM = _table(_ON_A_STREAM)
HAS_NO_OP = np.zeros(256, dtype=np.bool_)
HAS_NO_OP[[int(kind) for kind in _PYTHON]] = True


class LaunchFields:
    """``External id``, ``correlation``, ``device`` and ``stream`` of a trace's events."""

    KEYS = ("External id", "device", "stream", "correlation")
    FROM_IDS = ("External id", "correlation")

    def __init__(self, trace: Trace) -> None:
        places = [trace.places[row.place] for row in trace.rows]
        self._trace = trace
        self._device = np.array([place.id for place in places], dtype=np.int64)
        self._stream = np.array([row.id for row in trace.rows], dtype=np.int64)
        self._on_device = np.array([place.kind is PlaceKind.DEVICE for place in places], dtype=np.bool_)

    @property
    def said(self) -> dict[str, Longs]:
        """What rows say themselves, by key: (rows,) int64; only of those of `on_device`."""
        return {"device": self._device, "stream": self._stream}

    @property
    def on_device(self) -> Mask:
        """(rows,) bool: which rows are a device's."""
        return self._on_device

    def of(self, chunk: Chunk) -> dict[str, Field]:
        """Return the fields of a chunk, by key.

        ``External id`` is the op's id: of ops and user ranges their own, of anything else that of the op it belongs to.
        ``correlation`` is the launch number of a launch and of what it caused. ``device`` and ``stream`` say where work ran;
        a user range's span on a stream carries neither, for tools take what does for work. A number that is 0 is none.
        """
        trace, index = self._trace, chunk.index
        types, row = trace.activity_type[index], trace.row[index]
        streamed = _HAS_STREAM[types] & self._on_device[row]
        from_ids = self.from_ids(chunk)
        return {
            "External id": from_ids["External id"],
            "device": number_field("device", self._device[row], streamed),
            "stream": number_field("stream", self._stream[row], streamed),
            "correlation": from_ids["correlation"],
        }

    def from_ids(self, chunk: Chunk) -> dict[str, Field]:
        """Return those fields that no row says: ``External id`` and ``correlation``."""
        trace, index = self._trace, chunk.index
        types = trace.activity_type[index]
        op = np.where(HAS_OWN_ID[types], trace.id[index], np.where(HAS_NO_OP[types], 0, trace.linked[index]))
        launch = trace.id[index]
        return {
            "External id": number_field("External id", op, op != 0),
            "correlation": number_field("correlation", launch, HAS_LAUNCH[types] & (launch != 0)),
        }
