"""Replay of the native device's ring: calls that were made earlier, in the order in which they were queued."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openreg_sim.ring import CallKind, CopyKind
from openreg_sim.runtime.cost import CostModel, Signature, Work, kernel_of, work_of
from openreg_sim.runtime.errors import OpenRegError
from openreg_sim.runtime.submission import Submission

__all__ = ["Replay"]


class _Row(NamedTuple):
    """One record of the ring as whole numbers; `RING_DTYPE` says what they mean."""

    host_start_ns: int
    host_end_ns: int
    op_id: int
    user_id: int
    thread_id: int
    bytes: int
    event: int
    name: int
    signature: int
    stream: int
    device: int
    peer: int
    kind: int
    copy_kind: int


class Replay:
    """Turns ring records into calls. Not thread-safe; the runtime holds its lock.

    Attributes:
        error: the first error of a replayed call that nobody has seen yet; its caller is long gone.
    """

    def __init__(self, submission: Submission, cost: CostModel) -> None:
        self.error: OpenRegError | None = None
        self._submission = submission
        self._cost = cost
        self._op_name: Callable[[int], str] = lambda number: f"op {number}"
        self._signature: Callable[[int], Signature] = lambda number: ()
        self._launches: dict[tuple[int, int], tuple[int, int, Work, int]] = {}

    def set_names(self, op_name: Callable[[int], str], signature: Callable[[int], Signature]) -> None:
        """Say how to read the names and signatures of launches; each number is asked for once."""
        self._op_name = op_name
        self._signature = signature
        self._launches.clear()

    def run(self, records: npt.NDArray[np.void]) -> None:
        """Replay records, shape (n,), `RING_DTYPE`."""
        columns = [records[name].astype(np.int64).tolist() for name in _Row._fields]
        for row in map(_Row._make, zip(*columns, strict=True)):
            try:
                self._call(row)
            except OpenRegError as error:
                self.error = self.error or error

    def _call(self, row: _Row) -> None:
        submission = self._submission
        caller = (row.host_start_ns, row.host_end_ns, row.thread_id, row.op_id, row.user_id)
        kind = row.kind
        if kind == CallKind.EVENT_DESTROY:
            submission.timeline.events.pop(row.event, None)
            return
        stream = submission.timeline.stream(row.device, row.stream)
        if kind == CallKind.LAUNCH:
            submission.launch(caller, stream, *self._launch(row.name, row.signature))
        elif kind == CallKind.MEMCPY:
            submission.copy(caller, stream, CopyKind(row.copy_kind), row.bytes, row.peer)
        elif kind == CallKind.MEMSET:
            submission.fill(caller, stream, row.bytes)
        elif kind == CallKind.EVENT_RECORD:
            submission.record_event(caller, stream, row.event)
        elif kind == CallKind.STREAM_WAIT_EVENT:
            submission.wait_event(caller, stream, row.event)
        else:
            raise ValueError(f"ring record of unknown kind {kind}; expected one of {[int(k) for k in CallKind]}")

    def _launch(self, name: int, signature: int) -> tuple[int, int, Work, int]:
        """Return kernel, shape, work and duration (ns) of a launch by an op; worked out once per name and signature."""
        key = (name, signature)
        launch = self._launches.get(key)
        if launch is None:
            op = self._op_name(name)
            work = work_of(op, self._signature(signature))
            names = self._submission.names
            duration_ns = self._cost.kernel_ns(work.flops, work.bytes)
            launch = names.number(kernel_of(op)), names.shape_number(work.grid, work.block), work, duration_ns
            self._launches[key] = launch
        return launch
