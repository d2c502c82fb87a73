"""Floating point operations of some ops, worked out from the shapes of their inputs.

The ops and the counts are those of torch (`computeFlops` in torch/csrc/profiler/util.cpp): a multiplication and an addition are
two operations; `aten::mul` and `aten::add` count one per element of their first input.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from devprof.analysis.columns import Longs, combined
from devprof.analysis.shapes import DIMS, structured, text_numbers
from devprof.store import Trace

__all__ = ["ITEM", "flops_of"]

ITEM = "Flops"
"""Where a host counted by itself, its count is taken."""

_CONCRETE = "Concrete Inputs"


def flops_of(trace: Trace, events: Longs) -> Longs:
    """Return the operations of each event: (e,) int64, 0 where nothing is known.

    Args:
        trace: the trace; unless it has counts or its fact `with_flops` is true, nothing is worked out.
        events: (e,) int64, indices of events.
    """
    counted = trace.items.get(ITEM)
    if counted is not None:
        return counted.dense(len(trace))[events].astype(np.int64)
    flops = np.zeros(len(events), dtype=np.int64)
    known = np.zeros(len(trace.strings), dtype=np.bool_)
    if trace.facts.get("with_flops"):
        known[[number for number, text in enumerate(trace.strings) if text in _FORMULAS]] = True
    at = np.flatnonzero(known[trace.name[events]])
    if len(at):
        flops[at] = _worked_out(trace, events[at])
    return flops


def _worked_out(trace: Trace, events: Longs) -> Longs:
    """Work out each distinct combination of op and inputs once."""
    columns = [trace.name[events].astype(np.int64), *(text_numbers(trace, key, events) for key in (DIMS, _CONCRETE))]
    codes, count = combined([(column + 1, len(trace.strings) + 1) for column in columns], len(events))
    first = np.zeros(count, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(events))[::-1]
    texts = [[trace.strings[n] if n >= 0 else "" for n in column[first].tolist()] for column in columns]
    return np.array([_flops(*row) for row in zip(*texts, strict=True)], dtype=np.int64)[codes]


def _flops(name: str, dims: str, concrete: str) -> int:
    try:
        return _FORMULAS[name](structured(dims), concrete)
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        return 0  # inputs that the formula does not know


def _product(first: int, second: int) -> Callable[[Sequence[Any], str], int]:
    """Return the formula of a matrix product, batched or not, of two of the inputs."""

    def formula(shapes: Sequence[Any], concrete: str) -> int:
        left, right = shapes[first], shapes[second]
        return 2 * prod(left) * int(right[-1]) if left and right else 0

    return formula


def _per_element(shapes: Sequence[Any], concrete: str) -> int:
    return prod(shapes[0])


def _convolution(shapes: Sequence[Any], concrete: str) -> int:
    (batch, channels, *size), (out_channels, _, *kernel) = shapes[0], shapes[1]
    arguments = json.loads(concrete)
    stride, padding, dilation = ([int(n) for n in _listed(arguments[i])] for i in (3, 4, 5))
    groups = int(arguments[6])
    out = [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    return int(2 * batch * prod(out) * prod(kernel) * channels * out_channels // groups)


def _listed(argument: Any) -> list[Any]:
    found = json.loads(argument) if isinstance(argument, str) else argument
    return found if isinstance(found, list) else [found]


_FORMULAS: Mapping[str, Callable[[Sequence[Any], str], int]] = {
    "aten::mm": _product(0, 1),
    "aten::addmm": _product(1, 2),
    "aten::bmm": _product(0, 1),
    "aten::baddbmm": _product(1, 2),
    "aten::conv2d": _convolution,
    "aten::mul": _per_element,
    "aten::add": _per_element,
}
