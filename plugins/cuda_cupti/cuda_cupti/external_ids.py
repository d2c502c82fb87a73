"""Op and user ids as CUPTI's external correlation ids, stamped so that a session knows its own.

CUPTI keeps a stack of external ids per thread and kind, for the life of the process. What an earlier session left on a thread,
or another profiler pushed under the same kind, would look like an id of this one. So every pushed id carries the number of its
session, and a record whose id carries another is taken as having none.
"""

from __future__ import annotations

import itertools
import threading

import numpy as np
import numpy.typing as npt

__all__ = ["OP_KIND", "USER_KIND", "ExternalIds"]

OP_KIND = 5
"""``CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2``: op ids. CUSTOM0 and CUSTOM1 are Kineto's in its own sessions."""

USER_KIND = 4
"""``CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1``: ids of user ranges. CUPTI reserves the custom kinds for tools, and there is no
fourth one. Kineto has this one while it records, which is never while devprof does; what it left on a thread lies below, and
carries no stamp of ours. A GPU has been seen to hand back both kinds."""

_STAMP_BITS = 22
_VALUE_BITS = 41
_LISTED = 1 << _VALUE_BITS
_VALUE = _LISTED - 1

_numbers = itertools.count(1)


class ExternalIds:
    """The ids of one session, as they go out and as they come back.

    An id goes out as ``stamp << 42 | listed << 41 | value``: an id below 2**41 is the value itself, a greater one is put on a
    list and its place there is the value. Usable from any thread.
    """

    def __init__(self) -> None:
        """Begin a session of ids; its stamp is none of the four million sessions before, and not 0."""
        self._stamp = next(_numbers) % ((1 << _STAMP_BITS) - 1) + 1
        self._base = self._stamp << (_VALUE_BITS + 1)
        self._listed: list[int] = []
        self._lock = threading.Lock()

    def outgoing(self, id: int) -> int:
        """Return what to push for an id of 1 to 2**64 - 1."""
        if id <= _VALUE:
            return self._base | id
        with self._lock:
            self._listed.append(id)
            return self._base | _LISTED | (len(self._listed) - 1)

    def incoming(self, pushed: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the ids that pushed numbers stand for, 0 for those of another session or another profiler.

        Args:
            pushed: shape (n,), ``externalId`` of external correlation records.
        """
        shift, one = np.uint64(_VALUE_BITS + 1), np.uint64(1)
        value = pushed & np.uint64(_VALUE)
        is_listed = (pushed >> np.uint64(_VALUE_BITS)) & one == one
        listed = np.array(self._listed, dtype=np.uint64)
        known = ~is_listed | (value < len(listed))
        if len(listed):
            value = np.where(is_listed & known, listed[np.where(is_listed & known, value, 0)], value)
        ours = (pushed >> shift == np.uint64(self._stamp)) & known
        return np.where(ours, value, np.uint64(0))
