"""Plugins that keep stacks of the current ids themselves, and so want to hear of every range."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable

from devprof.capture import Lane
from devprof.contract import CorrelationAccess, NativeCorrelation

__all__ = ["Mirror", "mirrors_of"]

Mirror = tuple[Callable[[int, int], object], Callable[[int], object]]
"""``push(kind, id)`` and ``pop(kind)``, called on the thread of the range; kind 0 is an op, 1 a user range."""

_Push = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)
_Pop = ctypes.CFUNCTYPE(None, ctypes.c_uint32)


def mirrors_of(lanes: Iterable[Lane]) -> list[Mirror]:
    """Return the pushes and pops of the plugins that want them.

    A plugin that has native ones only while its library is loaded gets its Python ones called where it is not, unless it gives
    two zeros: it reads the ids itself.
    """
    wanting = [
        lane for lane in lanes if lane.alive and lane.plugin.capabilities.correlation is not CorrelationAccess.READ
    ]
    found = [(lane, lane.native_correlation) for lane in wanting]
    return [
        (lane.push, lane.pop) if native is None else _native(native)
        for lane, native in found
        if native is None or native.push or native.pop
    ]


def _native(functions: NativeCorrelation) -> Mirror:
    nothing = (lambda kind, number: None), (lambda kind: None)
    return (
        _Push(functions.push) if functions.push else nothing[0],
        _Pop(functions.pop) if functions.pop else nothing[1],
    )
