"""Entering a range, but for the time when it starts: its place, its range around, its inputs."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from contextvars import Token

from devprof.host.gate import BLOCK_SIZE, CURRENT, OpenRange, current_range
from devprof.host.queues import Block, ThreadQueues

__all__ = ["begin", "note_inputs"]

_pair = struct.Struct("qq").pack


def begin(entered: OpenRange, queues: ThreadQueues, label: Hashable, is_user: bool) -> Block:
    """Take a place for a range and make it current. The caller writes the start time, as the last thing it does.

    `record_function.__enter__` does the same in line, for speed.

    Args:
        entered: the range.
        queues: the session's queues.
        label: as in `Queue.labels`.
        is_user: True for a user range.
    """
    block = queues.block
    at = block.next
    if at == BLOCK_SIZE:
        block, at = queues.next_block(), 0
    block.next = at + 1
    outer = current_range()
    entered.at, entered.gone = at, False
    entered.id = block.first_id + at
    entered.user_id = entered.id if is_user else outer.user_id
    block.parents[at] = outer.id
    try:
        block.labels[at] = block.names[label]
    except KeyError:
        block.labels[at] = block.queue.labels.number(label)
    token: Token[OpenRange] = CURRENT.set(entered)
    entered.token = token
    entered.block = block
    return block


def note_inputs(block: Block, id: int, inputs: Sequence[object]) -> None:
    """Put down what a range's inputs look like, where the session wants to know."""
    queue = block.queue
    if queue.signatures is not None:
        queue.inputs += _pair(id, queue.signatures.number(inputs))
