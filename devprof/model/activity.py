"""`GenericTraceActivity`: one record of a trace, as a plugin author writes it.

Source: libkineto/include/GenericTraceActivity.h. Pointers become ids here: `linked` is the id of the op, not its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from devprof.model.activity_type import ActivityType

__all__ = ["Flow", "GenericTraceActivity", "MetadataValue", "kLinkAsyncCpuGpu", "kLinkFwdBwd"]

kLinkFwdBwd = 1
"""Flow type of an arrow from a forward op to its backward op."""
kLinkAsyncCpuGpu = 2
"""Flow type of an arrow from a launch on the host to the work it caused on a device."""

MetadataValue = bool | int | float | str | tuple[int, ...]
"""What a metadata item may hold; text is cleaned, non-finite floats are rejected where a format cannot hold them."""


class Flow(NamedTuple):
    """An arrow's end.

    Attributes:
        id: key that both ends share; unique per type within a session. 0 means no flow.
        type: `kLinkFwdBwd` or `kLinkAsyncCpuGpu`.
        start: True where the arrow leaves, False where it arrives.
    """

    id: int
    type: int
    start: bool


@dataclass(slots=True)
class GenericTraceActivity:
    """One activity: a thing that was recorded, with a start and an end.

    A plugin fills what it knows. devprof derives the flow from `id`, resolves `linked`, renumbers launches, names rows and
    checks the window; a plugin that sets `flow` itself overrides the derived one.

    `id` is the plugin's own number, `linked` is devprof's op id at the launch; never put one in the other.

    Records that come one by one are on the session's clock: ticks if `clock_domain()` returns one, else Unix ns. A session with
    a clock of its own hands host calls, stamped by the host, over as a batch on ``unix_ns``:
    ``logger.handle_activities(ActivityBatch.from_activities(host_calls))``, and device work as a batch with ``clock=NAME``.

    Attributes:
        activity_type: kind of the record.
        activity_name: text of the slice; any text is allowed, it is cleaned where a format cannot hold it.
        start_ns: start, nanoseconds since the Unix epoch (CLOCK_REALTIME), or ticks of the clock that it is handed over on.
        end_ns: end, same clock; equal to `start_ns` for an instant or a counter.
        id: the plugin's own launch number (vendor correlation id): equal on a launch and on the work it caused. 0: none.
        device: index of the device, from 0; host records leave it 0.
        resource: stream, queue or engine on the device; host records leave it 0.
        thread_id: native id of the host thread that made the call (host records), or that launched the work.
        linked: op id (external id) current on that thread at the launch, from `devprof.correlation`. 0: none.
        linked_user: user id (innermost `record_function` range) current at the launch. 0: none.
        flow: an explicit arrow end, or None to let devprof derive it from `id`.
        metadata: items shown as the slice's ``args``; an item that is None is left out.
        counter_values: values of a counter sample, for counter types only.
    """

    activity_type: ActivityType
    activity_name: str
    start_ns: int
    end_ns: int
    id: int = 0
    device: int = 0
    resource: int = 0
    thread_id: int = 0
    linked: int = 0
    linked_user: int = 0
    flow: Flow | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    counter_values: Mapping[str, float] = field(default_factory=dict)

    @property
    def duration_ns(self) -> int:
        """End minus start; negative where the record is wrong."""
        return self.end_ns - self.start_ns
