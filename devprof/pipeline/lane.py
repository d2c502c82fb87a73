"""`process`: one plugin's delivery, through every stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from devprof.capture import LaneResult, PluginLedger
from devprof.clock import Fit
from devprof.contract import ClockSample
from devprof.link import LinkResult, annotations, apply_window, join_launches, link
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo

__all__ = ["LinkedLane", "process"]

KnownOps = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]
