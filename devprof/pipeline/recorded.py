"""What linking asks of a host recording."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from devprof.host import HostRecording
from devprof.link import IdTable, UserParents
from devprof.model import ActivityType

__all__ = ["known_ops", "user_parents"]


def known_ops(recording: HostRecording) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
    """Return the question that `process` asks of distinct op ids: which ones the host recorded.

    Work belongs to the innermost range of any scope, so a user range's id is an op id too.
    """
    table = IdTable(recording.ranges.id)
    return lambda ids: table.find(ids) >= 0


def user_parents(recording: HostRecording) -> UserParents:
    """Return the enclosing user range of each user range, for `process`."""
    ranges = recording.ranges
    users = ranges.activity_type == int(ActivityType.USER_ANNOTATION)
    return UserParents(ranges.id[users], ranges.linked_user[users])
