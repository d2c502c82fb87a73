"""Entering a range, but for the time when it starts: its place, its range around, its inputs."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from contextvars import Token

from devprof.errors import UsageError
from devprof.host.gate import BLOCK_SIZE, CURRENT, OpenRange, current_range
from devprof.host.queues import Block, ThreadQueues

__all__ = ["begin", "note_inputs", "text_of"]

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
    block = queues.block or queues.next_block()
    at = block.next
    while at == BLOCK_SIZE:
        block = queues.next_block()
        at = block.next  # a signal handler may have entered ranges meanwhile
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


def text_of(value: object, what: str) -> str:
    """Return a text of a class of its own as plain text.

    Args:
        value: a text, whatever its class.
        what: what it is, for the message.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, str):
        return str.__str__(value)
    raise UsageError(f"{what} is text; found {type(value).__name__} {value!r}")
