"""Every plugin's delivery through the stages, each with its own launch numbers and device ids, for both hosts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from devprof.capture import LaneResult, PluginLedger, SessionReport
from devprof.capture.ledger import Part
from devprof.link.columns import on_device
from devprof.pipeline.lane import KnownOps, LinkedLane, process

__all__ = ["DEVICES_PER_PLUGIN", "accounted", "linked_lanes"]

log = logging.getLogger("devprof.pipeline")

DEVICES_PER_PLUGIN = 100
"""Distance between the device ids of two plugins, so that two "device 0" do not share a row."""

FIRST_LAUNCH = 2**30
"""First launch number of a session: above the ids of ops, and as many are left within int32."""

_GREATEST_DEVICE = int(np.iinfo(np.int32).max)
_MOST_OFFSET = 2**30


def linked_lanes(
    results: Sequence[LaneResult],
    report: SessionReport,
    *,
    known_ops: KnownOps | None,
    user_parents: Mapping[int, int],
    widened_by_ns: int = 1,
) -> Iterator[LinkedLane]:
    """Convert, window and link what the plugins delivered, one after the other; one that cannot be is counted as lost.

    Args:
        results: the deliveries.
        report: the account, with the window.
        known_ops, user_parents, widened_by_ns: as for `process`.
    """
    launch, free = FIRST_LAUNCH, 0
    for result in results:
        greatest = _greatest_device(result)
        lane = None
        with accounted(result.ledger, report, delivered=sum(map(len, result.batches))):
            lane = process(
                result,
                start_ns=report.start_ns,
                end_ns=report.end_ns,
                known_ops=known_ops,
                user_parents=user_parents,
                launch_base=launch,
                device_offset=free if greatest + free <= _GREATEST_DEVICE else 0,
                widened_by_ns=widened_by_ns,
            )
        if lane is not None:
            launch, free = lane.next_launch, _next_offset(free, greatest + lane.device_offset)
            yield lane


@contextmanager
def accounted(ledger: PluginLedger, report: SessionReport, *, delivered: int = 0) -> Iterator[Part]:
    """Keep a plugin's account closed where devprof fails with its records: what is not in the part by then is lost.

    Args:
        ledger: the plugin's account.
        report: gets a note of the failure.
        delivered: how many records there are that the account does not count yet.
    """
    part, produced = Part(), ledger.produced + delivered
    try:
        yield part
    except Exception as error:
        log.exception("the records of plugin %r are lost", ledger.plugin)
        report.notes.append(f"{ledger.plugin}: devprof failed to process its records: {error!r}")
        ledger.give_up("devprof failed to process it", produced, part)


def _greatest_device(result: LaneResult) -> int:
    """Return the greatest device index that a row may have, without an offset; -1: none."""
    used = (int(batch.device[there].max()) for batch in result.batches if (there := on_device([batch])).any())
    return max([-1, *used, *(info.id for info in result.device_infos)])


def _next_offset(offset: int, greatest: int) -> int:
    """Return the next plugin's first device id: behind every device so far, in whole hundreds, while int32 has room."""
    following = max(offset, greatest // DEVICES_PER_PLUGIN * DEVICES_PER_PLUGIN) + DEVICES_PER_PLUGIN
    return following if following < _MOST_OFFSET else offset + DEVICES_PER_PLUGIN
