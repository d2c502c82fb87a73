"""What stands around the values of an event in a Chrome trace: its phase and category, and those of its arrow."""

from __future__ import annotations

import numpy as np

from devprof.export.arrows import ARROW_NAMES
from devprof.model import ActivityType, Role

__all__ = ["IS_COUNTER", "IS_SLICE", "arrow_texts", "category", "head_of"]

IS_COUNTER = np.zeros(256, dtype=np.bool_)
IS_COUNTER[[int(kind) for kind in ActivityType if kind.role is Role.COUNTER]] = True
"""(256,) bool, by number of `ActivityType`: which events are samples of counters."""

IS_SLICE = ~IS_COUNTER
"""(256,) bool, by number of `ActivityType`: which events are slices, with a start and an end."""
IS_SLICE[ActivityType.CPU_INSTANT_EVENT] = False


def category(activity_type: int) -> str:
    """Return what a file calls a kind of event."""
    try:
        return ActivityType(activity_type).label
    except ValueError:
        return f"activity_{activity_type}"  # of a later Kineto than this devprof knows


def head_of(activity_type: int) -> str:
    """Return the text of an event up to its name."""
    phase = '"X"' if IS_SLICE[activity_type] else '"C"' if IS_COUNTER[activity_type] else '"i","s":"t"'
    return f'{{"ph":{phase},"cat":"{category(activity_type)}","name":'


def arrow_texts(arrow: int) -> tuple[str, str]:
    """Return the text of an arrow's end up to its number, and after its time; of what `Arrows.at` calls its kind."""
    name, starts = ARROW_NAMES[arrow >> 1], arrow & 1
    phase, binding = ("s", "") if starts else ("f", ',"bp":"e"')
    return f',\n{{"ph":"{phase}","id":', f',"cat":"{name}","name":"{name}"{binding}}}'
