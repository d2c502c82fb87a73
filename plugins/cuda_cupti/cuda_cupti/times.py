"""Which records have times that can be shown; the others are counted, by what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from cuda_cupti.rows import Rows

__all__ = ["ENDS_FIRST", "NO_TIMES", "OUT_OF_RANGE", "UNFINISHED", "stamped", "timed"]

Mask = npt.NDArray[np.bool_]

NO_TIMES = "CUPTI gave no start time"
UNFINISHED = "still running when it was flushed"
ENDS_FIRST = "CUPTI's times are not in order"
OUT_OF_RANGE = "CUPTI's time is after the year 2262"

_LATEST_NS = np.uint64(1 << 63)


def timed(rows: Rows, lost: Counter[str]) -> Mask:
    """Say which records have a start and an end, (n,), and count the others in `lost`.

    CUPTI says 0 for a time that it does not know: where its buffers on the device ran out, and for the end of what a forced
    flush took before it was over.
    """
    start, end = rows["start"], rows["end"]
    known = start > 0
    ended = known & (end > 0)
    in_range = (start < _LATEST_NS) & (end < _LATEST_NS)
    kept = ended & in_range & (start <= end)
    if not kept.all():
        wrong = ended & ~kept
        _count(
            lost,
            {
                NO_TIMES: ~known,
                UNFINISHED: known & ~ended,
                OUT_OF_RANGE: wrong & ~in_range,
                ENDS_FIRST: wrong & in_range,
            },
        )
    return kept


def stamped(at: npt.NDArray[np.uint64], lost: Counter[str]) -> Mask:
    """Say which instants, (n,) ns, have a time, (n,), and count the others in `lost`."""
    kept = (at > 0) & (at < _LATEST_NS)
    if not kept.all():
        _count(lost, {NO_TIMES: at == 0, OUT_OF_RANGE: at >= _LATEST_NS})
    return kept


def _count(lost: Counter[str], masks: Mapping[str, Mask]) -> None:
    lost.update({reason: int(mask.sum()) for reason, mask in masks.items() if mask.any()})
