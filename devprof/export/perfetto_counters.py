"""Samples of counters in a Perfetto trace: each counter of a row is a track of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk, found
from devprof.export.perfetto_packets import event_packet
from devprof.export.perfetto_tracks import counter_packet
from devprof.export.protobuf import FIXED64, VARINT, fixed64, number_field, records, tag, varint_column
from devprof.export.shapes import IS_COUNTER
from devprof.store import Trace

__all__ = ["Counters", "sample_packets"]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_TYPE, _TRACK, _VALUE = 9, 11, 44  # of TrackEvent
_IS_SAMPLE = 4


class Counters:
    """The counters of a trace."""

    def __init__(self, trace: Trace, base_ns: int, row_uuid: Longs, free_uuid: int) -> None:
        """Write no sample yet.

        Args:
            trace: the trace.
            base_ns: what the file's clock counts from.
            row_uuid: (rows,) int64, the tracks under which counters stand.
            free_uuid: the first number that no track has.
        """
        self._trace = trace
        self._base_ns = np.int64(base_ns)
        self._row_uuid = row_uuid
        self._free_uuid = free_uuid
        self._uuids: dict[tuple[int, int, str], int] = {}  # by row, name, and key

    def of(self, chunk: Chunk) -> tuple[Mask, list[bytes]]:
        """Return which events of a chunk are samples, and the packets of those.

        A counter's event without a value is no sample.
        """
        is_sample = np.zeros(len(chunk.events), dtype=np.bool_)
        packets: list[bytes] = []
        if self._trace.counters:
            is_counter = IS_COUNTER[self._trace.activity_type[chunk.index]]
            for key, column in self._trace.counters.items():
                at, values = found(column, chunk)
                sampled = is_counter[at]
                if sampled.any():
                    is_sample[at[sampled]] = True
                    packets += self._packets(key, chunk.events[at[sampled]], values[sampled])
        return is_sample, packets

    def samples(self) -> Mask:
        """Return which events of the trace are samples: (n,) bool."""
        found = np.zeros(len(self._trace), dtype=np.bool_)
        for column in self._trace.counters.values():
            found[column.events] = True
        return found & IS_COUNTER[self._trace.activity_type]

    def _packets(self, key: str, events: Longs, values: npt.NDArray[np.float64]) -> Iterator[bytes]:
        trace = self._trace
        tracks = trace.row[events].astype(np.int64) * len(trace.strings) + trace.name[events]
        distinct, which = np.unique(tracks, return_inverse=True)
        uuids = []
        for row, name in zip(*(part.tolist() for part in np.divmod(distinct, len(trace.strings))), strict=True):
            if (row, name, key) not in self._uuids:
                self._uuids[row, name, key] = self._free_uuid + len(self._uuids)
                title = f"{trace.strings[name]} {key}"
                yield counter_packet(self._uuids[row, name, key], int(self._row_uuid[row]), title)
            uuids.append(self._uuids[row, name, key])
        track = np.array(uuids, dtype=np.int64)[which.reshape(-1)]
        yield sample_packets(trace.start_ns[events] - self._base_ns, track, values)


def sample_packets(time_ns: Longs, track: Longs, values: npt.NDArray[np.float64]) -> bytes:
    """Return the packets of samples of counters.

    Args:
        time_ns: (n,) on the file's clock.
        track: (n,) the counters' uuids.
        values: (n,) the samples.
    """
    sample = [
        number_field(_TYPE, _IS_SAMPLE) + tag(_TRACK, VARINT),
        *varint_column(track),
        tag(_VALUE, FIXED64),
        *fixed64(values),
    ]
    return records(event_packet(varint_column(time_ns), sample), slice(None), len(values)).tobytes()
