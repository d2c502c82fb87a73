"""Args that follow from an event's ids and its row, under Kineto's keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk, Field, number_field
from devprof.model import ActivityType, Role
from devprof.store import PlaceKind, Trace

__all__ = ["LaunchFields"]

_IDS_OF_THEIR_OWN = {Role.OP, Role.ANNOTATION}
_LAUNCHED = {Role.LAUNCH, Role.KERNEL, Role.COPY, Role.SET, Role.SYNC}
_ON_A_STREAM = {Role.KERNEL, Role.COPY, Role.SET, Role.SYNC}
_PYTHON = {ActivityType.PYTHON_FUNCTION}


def _table(roles: set[Role]) -> npt.NDArray[np.bool_]:
    table = np.zeros(256, dtype=np.bool_)
    table[[int(kind) for kind in ActivityType if kind.role in roles]] = True
    return table


_HAS_OWN_ID = _table(_IDS_OF_THEIR_OWN)
_HAS_LAUNCH = _table(_LAUNCHED)
_HAS_STREAM = _table(_ON_A_STREAM)
_HAS_NO_OP = np.zeros(256, dtype=np.bool_)
_HAS_NO_OP[[int(kind) for kind in _PYTHON]] = True


class LaunchFields:
    """``External id``, ``correlation``, ``device`` and ``stream`` of a trace's events."""

    KEYS = ("External id", "device", "stream", "correlation")

    def __init__(self, trace: Trace) -> None:
        places = [trace.places[row.place] for row in trace.rows]
        self._trace = trace
        self._device = np.array([place.id for place in places], dtype=np.int64)
        self._stream = np.array([row.id for row in trace.rows], dtype=np.int64)
        self._on_device = np.array([place.kind is PlaceKind.DEVICE for place in places], dtype=np.bool_)

    def of(self, chunk: Chunk) -> dict[str, Field]:
        """Return the fields of a chunk, by key.

        ``External id`` is the op's id: of ops and user ranges their own, of anything else that of the op it belongs to.
        ``correlation`` is the launch number of a launch and of what it caused. ``device`` and ``stream`` say where work ran;
        a user range's span on a stream carries neither, for tools take what does for work. A number that is 0 is none.
        """
        trace, index = self._trace, chunk.index
        types, row = trace.activity_type[index], trace.row[index]
        op = np.where(_HAS_OWN_ID[types], trace.id[index], np.where(_HAS_NO_OP[types], 0, trace.linked[index]))
        launch = trace.id[index]
        streamed = _HAS_STREAM[types] & self._on_device[row]
        return {
            "External id": number_field("External id", op, op != 0),
            "device": number_field("device", self._device[row], streamed),
            "stream": number_field("stream", self._stream[row], streamed),
            "correlation": number_field("correlation", launch, _HAS_LAUNCH[types] & (launch != 0)),
        }
