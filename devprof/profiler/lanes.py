"""From what the plugins delivered to linked lanes, each with its own launch numbers and device ids."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from devprof.capture import LaneResult, SessionReport
from devprof.host import HostRecording
from devprof.pipeline import LinkedLane, known_ops, process, user_parents

__all__ = ["linked_lanes"]

log = logging.getLogger("devprof.profiler")

DEVICES_PER_PLUGIN = 100
"""Distance between the device ids of two plugins, as under torch, so that two "device 0" do not share a row."""

FIRST_LAUNCH = 2**30


def linked_lanes(
    results: Sequence[LaneResult], recording: HostRecording, report: SessionReport, *, first_launch: int = FIRST_LAUNCH
) -> list[LinkedLane]:
    """Convert, window and link what the plugins delivered; one that cannot be processed is counted as lost.

    Args:
        results: the deliveries.
        recording: what the host recorded, whose ranges are the ops.
        report: the account, with the window.
        first_launch: first launch number to give out.
    """
    lanes: list[LinkedLane] = []
    ops = known_ops(recording) if report.host_ops else None
    parents = user_parents(recording)
    launch, offset = first_launch, 0
    for result in results:
        try:
            lane = process(
                result,
                start_ns=report.start_ns,
                end_ns=report.end_ns,
                known_ops=ops,
                user_parents=parents,
                launch_base=launch,
                device_offset=offset,
                widened_by_ns=0,
            )
        except Exception as error:
            log.exception("the records of plugin %r are lost", result.name)
            report.notes.append(f"{result.name}: devprof failed to process its records: {error!r}")
            result.ledger.give_up("devprof failed to process it", sum(map(len, result.batches)))
            continue
        lanes.append(lane)
        launch, offset = lane.next_launch, _next_offset(offset, max(_devices(lane), default=0))
    return lanes


def _devices(lane: LinkedLane) -> Iterator[int]:
    """Yield device indices of a lane that its rows take, without the offset."""
    yield from (int(batch.device.max()) for batch in lane.batches if len(batch))
    yield from (info.id for info in lane.device_infos)


def _next_offset(offset: int, greatest: int) -> int:
    """Return the next plugin's first device id: behind every device so far, in whole hundreds."""
    return offset + (greatest // DEVICES_PER_PLUGIN + 1) * DEVICES_PER_PLUGIN
