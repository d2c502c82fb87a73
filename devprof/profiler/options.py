"""From the arguments of `profile` to the options that a host gets."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping

from devprof.capture.hosting import ProfileOptions, WantedActivity
from devprof.errors import UsageError
from devprof.profiler.activities import wanted_activities
from devprof.store.limits import Limits

__all__ = ["TORCH_ONLY", "TraceIds", "profile_options"]

TORCH_ONLY = ("experimental_config", "execution_trace_observer", "post_processing_timeout_s")
"""Options that only torch's profiler knows."""

_CPU = WantedActivity("CPU")


class TraceIds:
    """Gives each trace its id: the user's, or 32 random hexadecimal digits."""

    def __init__(self, callback: Callable[[], str] | None) -> None:
        self.callback = callback

    def make(self) -> str:
        """Return the next id."""
        return f"{uuid.uuid4().int:032X}" if self.callback is None else str(self.callback())


def profile_options(
    activities: Iterable[object] | None,
    use_cpu: bool | None,
    ids: TraceIds,
    torch_only: Mapping[str, object],
    limits: Limits | None = None,
    **switches: bool,
) -> ProfileOptions:
    """Return the options of a profile.

    Args:
        activities: as the user gave them; None: all.
        use_cpu: record the host's side, whatever the activities say; None: as they say.
        ids: gives the ids of traces.
        torch_only: what only torch's profiler knows; what is None is not given.
        limits: how much to keep; None: all.
        switches: `record_shapes` and the other switches of `ProfileOptions`.

    Raises:
        UsageError: the activities are wrong, or nothing is left to record.
    """
    wanted = None if activities is None else wanted_activities(activities)
    named = next((one for one in wanted or () if one.name == _CPU.name), None)
    by_itself = _CPU if wanted is None or use_cpu else None
    devices = None if wanted is None else tuple(one for one in wanted if one is not named)
    cpu = None if use_cpu is False else named or by_itself
    if cpu is None and devices == ():
        raise UsageError("there is nothing to record: activities hold no device, and the host's side is off")
    given = {name: value for name, value in torch_only.items() if value is not None}
    switches = {**switches, "record_shapes": switches["record_shapes"] or switches["with_flops"]}
    return ProfileOptions(cpu, devices, make_trace_id=ids.make, torch_only=given, limits=limits, **switches)
