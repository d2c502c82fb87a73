"""A plugin that writes into a batch's arrays after it has handed them over: its records are lost, the program is not."""

from __future__ import annotations

import numpy as np
import toyland
from toyland import Join

import devprof
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind


def test_text_indices_that_change_after_delivery_cost_the_plugins_records_only(join: Join) -> None:
    """Native code checks its own copy: an index outside the table would be read from anywhere."""
    texts = np.zeros(10, dtype=np.int32)

    def batch(start_ns: int, end_ns: int) -> ActivityBatch:
        return ActivityBatch.from_columns(
            ("k",),
            activity_type=int(ActivityType.CONCURRENT_KERNEL),
            name=0,
            start=start_ns + np.arange(10),
            end=start_ns + np.arange(10) + 1,
            metadata={"text": MetadataColumn(MetadataKind.STRING, texts)},
        )

    def refill() -> list[str]:
        texts[:] = 2**29
        return []

    plugin = join(script=lambda start_ns, end_ns: [batch(start_ns, end_ns)], methods={"errors": refill})
    with toyland.profile() as prof:
        toyland.run_in_op(lambda: None)
    report = devprof.report_of(prof)
    (ledger,) = report.ledgers.values()
    assert ledger.produced == ledger.dropped.total() == 10
    assert any("changed after they had been handed over" in note for note in report.notes)
    assert "toy::run" in toyland.ops_of(prof)
    assert plugin.sessions[-1].calls[-1] == "get_trace_buffer"
