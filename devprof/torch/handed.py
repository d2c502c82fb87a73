"""`Handed`: what was handed to the bridge for one capture, and what became of it in Kineto."""

from __future__ import annotations

import numpy as np

from devprof.capture import SessionReport
from devprof.capture.ledger import Part, PluginLedger
from devprof.link import LinkedColumns
from devprof.link.columns import WORK, classes_of
from devprof.model import ActivityBatch
from devprof.model.reasons import BEFORE_WINDOW
from devprof.torch.bridge import Bridge, Replayed

__all__ = ["Handed"]


class Handed:
    """The blocks of one capture, in the order in which the bridge holds them. Driven by one thread at a time."""

    def __init__(self) -> None:
        self._blocks: list[tuple[PluginLedger | None, int]] = []

    def records(self, ledger: PluginLedger, part: Part, batch: ActivityBatch, columns: LinkedColumns) -> None:
        """Note that the bridge has a batch of a plugin's records.

        Args:
            ledger: the plugin's account.
            part: what the bridge has of them, to be brought up to date.
            batch: the batch.
            columns: its link columns.
        """
        is_work = classes_of([batch]) == WORK
        part.records += len(batch)
        part.device_work += int(np.count_nonzero(is_work))
        part.linked += int(np.count_nonzero(is_work & (columns.linked != 0)))
        self._blocks.append((ledger, len(batch)))

    def spans(self, count: int) -> None:
        """Note that the bridge has spans of user ranges, which no account counts."""
        self._blocks.append((None, count))

    def lose(self, reason: str) -> None:
        """Count all of it as dropped: it is not in the trace."""
        for ledger, count in self._blocks:
            if ledger is not None and count:
                ledger.give_up(reason, ledger.produced)
        self._blocks.clear()

    def settle(self, bridge: Bridge, generation: int, report: SessionReport) -> None:
        """Bring the accounts in line with what Kineto took, when torch has stopped; what does not fit gets a note.

        Args:
            bridge: the loaded bridge.
            generation: the capture's number in the bridge.
            report: the capture's report.
        """
        replayed = bridge.replayed(generation)
        if replayed is None:
            self.lose("torch did not ask for it")
            report.complete = False
            report.notes.append("torch stopped without asking for the plugins' records; they are not in its trace")
            return
        report.timings_ns["kineto replay"] = replayed.spent_ns
        report.moved_host_calls = replayed.moved
        if replayed.outside:
            for (ledger, _), count in zip(self._blocks, bridge.outside(generation), strict=False):
                if ledger is not None:
                    ledger.leave_out(BEFORE_WINDOW, count)
        self._note(replayed, report)

    def _note(self, replayed: Replayed, report: SessionReport) -> None:
        handed, taken = sum(count for _, count in self._blocks), replayed.emitted + replayed.unnamed + replayed.outside
        if taken != handed:
            report.notes.append(
                f"torch took {taken} of {handed} records from devprof: the accounts of the plugins are wrong"
            )
        if replayed.strangers * 2 > replayed.calls:
            # a runtime that launches later, from a queue, has some; most of them mean that the ids are not op ids
            report.notes.append(
                f"{replayed.strangers} of {replayed.calls} host calls are linked to an op that was not running at the call: is "
                "`linked` the vendor's own number? It must be the op id that was current at the launch"
            )
        if replayed.unresolved:
            report.notes.append(f"{replayed.unresolved} records name an op that torch left out of the trace")
        if replayed.outside:
            report.notes.append(f"{replayed.outside} records started before torch's own window and were left out")
