"""Activity buffers with anything in them: each is a trace, or refused in words; nothing else comes out, and the account closes.

The corpus is made: whole records of every kind with random or extreme fields. DEVPROF_FUZZ_S says for how many seconds; by
default a few.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from openreg_sim import activity
from openreg_sim.decode import KINDS, batches_of
from openreg_sim.runtime import runtime

from devprof.capture import LaneResult, PluginLedger, check_batch
from devprof.pipeline import process

SECONDS = float(os.environ.get("DEVPROF_FUZZ_S", "2"))
EDGES = np.array([0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), 1_700_000_000_000_000_000])


def fuzzed(rng: np.random.Generator, n_names: int) -> npt.NDArray[np.void]:
    """Return records of known kinds and names, with everything else at random or at an edge."""
    records = np.frombuffer(rng.bytes(int(rng.integers(0, 40)) * activity.RECORD_BYTES), activity.RECORD_DTYPE).copy()
    n = len(records)
    records["kind"] = rng.choice([int(kind) for kind in activity.ActivityKind], n)
    records["name"] = rng.integers(0, n_names, n)
    for field in ("start", "end", "correlation", "thread_id"):
        edge = rng.random(n) < 0.5
        records[field] = np.where(edge, rng.choice(EDGES, n), records[field].astype(np.int64))
    sensible = rng.random(n) < 0.5
    records["start"] = np.where(sensible, 1_700_000_000_000_000_000 + rng.integers(0, 1000, n), records["start"])
    records["end"] = np.where(sensible, records["start"] + rng.integers(0, 100, n), records["end"])
    records["correlation"] = np.where(
        rng.random(n) < 0.5, rng.integers(0, 9, n).astype(np.uint64), records["correlation"]
    )
    if rng.random() < 0.9:
        records["correlation"] &= np.uint64(2**63 - 1)
        records["rest"] = np.zeros(1, records.dtype["rest"])
    records["device"] = np.where(rng.random(n) < 0.7, rng.integers(0, 3, n), records["device"])
    return records


def linked(records: npt.NDArray[np.void]) -> PluginLedger:
    """Take records the way that a session takes them; return the account."""
    ledger = PluginLedger("openreg")
    result = LaneResult("openreg", ledger)
    whole = activity.orActivityRecords([(bytearray(records.tobytes()), records.nbytes)])
    for batch in batches_of(whole):
        kept, rejected = check_batch(batch, frozenset(KINDS))
        ledger.rejected.update(rejected)
        result.batches.append(replace(kept, clock="unix_ns"))
    start_ns = 1_700_000_000_000_000_000
    process(result, start_ns=start_ns, end_ns=start_ns + 1000, known_ops=lambda ids: ids % 2 == 0)
    return ledger


def test_whatever_is_in_a_buffer_is_taken_or_counted() -> None:
    rng = np.random.default_rng(7)
    n_names = 1 + max(runtime()._submission.names.number(f"name {i}") for i in range(5))
    tried, refused = 0, list[str]()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or tried < 50:
        records = fuzzed(rng, n_names)
        taken = np.isin(records["kind"], [int(kind) for kind in KINDS.values()])
        tried += 1
        try:
            ledger = linked(records)
        except ValueError as error:  # a number that no record can hold; the guard makes it the plugin's failure
            refused.append(str(error))
        else:
            assert ledger.produced == int(taken.sum())
    assert [text for text in refused if "does not fit" not in text] == []
    assert 0 < len(refused) < tried
    print(f"{tried} buffers, {len(refused)} refused")


@pytest.mark.parametrize("size", [1, 79, 81, 159])
def test_a_buffer_that_ends_within_a_record_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="multiple of element size"):
        activity.orActivityRecords([(bytearray(160), size)])
