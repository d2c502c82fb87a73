"""Which records have times that can be shown; the others are counted, by what is wrong with them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from cuda_cupti.rows import Rows

__all__ = ["ENDS_FIRST", "NO_TIMES", "UNFINISHED", "timed"]

NO_TIMES = "CUPTI gave no start time"
UNFINISHED = "still running when it was flushed"
ENDS_FIRST = "CUPTI's times are not in order"

_LATEST_NS = np.uint64(1 << 63)


def timed(rows: Rows, lost: Counter[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which records have a start and an end, (n,), and count the others in `lost`.

    CUPTI says 0 for a time that it does not know: where its buffers on the device ran out, and for the end of what a forced
    flush took before it was over.
    """
    start, end = rows["start"], rows["end"]
    known = start > 0
    ended = known & (end > 0)
    kept = ended & (start <= end) & (end < _LATEST_NS)
    if not kept.all():
        counts = {NO_TIMES: ~known, UNFINISHED: known & ~ended, ENDS_FIRST: ended & ~kept}
        lost.update({reason: int(mask.sum()) for reason, mask in counts.items() if mask.any()})
    return kept
