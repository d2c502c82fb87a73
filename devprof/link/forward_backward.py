"""Arrows from forward ops to their backward ops (`kLinkFwdBwd`).

The rule is torch's own (`generateForwardBackwardLinks`, torch/csrc/profiler/collection.cpp), so that the same program gets the
same arrows with and without torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from devprof.link.columns import Bools, Longs, codes_of

__all__ = ["ForwardBackward", "forward_backward"]


@dataclass(frozen=True, slots=True, eq=False)
class ForwardBackward:
    """Pairs of a forward and its backward op; pair `i` is torch's arrow number ``i + 1``.

    Attributes:
        forward: (m,) int64, index of the event where the arrow leaves.
        backward: (m,) int64, index of the event where it arrives.
    """

    forward: Longs
    backward: Longs

    def __len__(self) -> int:
        return len(self.forward)


def forward_backward(
    start_ns: Longs, end_ns: Longs, thread: Longs, sequence_nr: Longs, forward_thread: Longs
) -> ForwardBackward:
    """Pair backward ops with the forward op that they differentiate, on whatever threads the two ran.

    The rule. A backward op is one with a forward thread; it and the forward ops of that thread with its sequence number belong
    together. Ops are taken by their ends; of equal ends the one given last, which is the inner one. A backward op takes, of the
    forward ops before it, the one that started last: several ops may carry a number, and the latest made the node. The others
    are then done with: one arrow per number, unless the number is used again. So of nested backward ops the inner one gets the
    arrow, and of two backward passes over one graph the first.

    Args:
        start_ns: (n,) int64, start of each op.
        end_ns: (n,) int64, its end.
        thread: (n,) int64, the thread that it ran on, in the same numbers as `forward_thread`.
        sequence_nr: (n,) int64, sequence number, negative: none.
        forward_thread: (n,) int64, thread of the forward op, 0: this is no backward op.
    """
    ops = np.flatnonzero(sequence_nr >= 0)
    is_backward = forward_thread[ops] > 0
    if not is_backward.any():
        return ForwardBackward(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    (threads,) = codes_of(np.where(is_backward, forward_thread[ops], thread[ops]))
    order = np.lexsort((-ops, end_ns[ops], sequence_nr[ops], threads))
    ops, is_backward = ops[order], is_backward[order]
    key = (threads[order], sequence_nr[ops])
    changes = np.any([values[1:] != values[:-1] for values in key], axis=0)
    # a turn ends with a backward op, or with its key
    turn = np.cumsum(np.concatenate([[False], changes | is_backward[:-1]]))
    backward = _last_of_turn(turn, np.arange(len(ops)), is_backward)
    by_start = np.lexsort((start_ns[ops], turn))
    forward = _last_of_turn(turn, by_start, ~is_backward)
    paired = (forward >= 0) & (backward >= 0)
    forward, backward = ops[forward[paired]], ops[backward[paired]]
    arrival = np.lexsort((-backward, end_ns[backward]))
    return ForwardBackward(forward[arrival], backward[arrival])


def _last_of_turn(turn: Longs, order: Longs, which: Bools) -> Longs:
    """Return, per turn, the last place of `order` that is one of `which`, -1: none."""
    last = np.full(int(turn[-1]) + 1, -1, dtype=np.int64)
    chosen = order[which[order]]
    last[turn[chosen]] = chosen  # where a turn has several, numpy keeps the last
    return last
