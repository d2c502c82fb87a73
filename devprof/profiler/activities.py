"""What is to be recorded: torch's groups of activities, or plugins by their names.

Source: torch/profiler/profiler.py (`ProfilerActivity`, `_parse_activities`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from devprof.capture.hosting import WantedActivity
from devprof.errors import UsageError
from devprof.model import ActivityType

__all__ = ["ProfilerActivity", "wanted_activities"]


class ProfilerActivity(Enum):
    """torch's groups of activities, by torch's names. torch's own members are taken everywhere as well."""

    CPU = "CPU"
    XPU = "XPU"
    MTIA = "MTIA"
    CUDA = "CUDA"
    HPU = "HPU"
    PrivateUse1 = "PrivateUse1"


_OF_TEXT = {member.name.lower(): member.name for member in ProfilerActivity}


def wanted_activities(activities: Iterable[object]) -> tuple[WantedActivity, ...]:
    """Read the user's activities.

    Args:
        activities: members of `ProfilerActivity` or torch's, names of plugins, "cpu", "cuda" and so on; or mappings of such to
            the names of the kinds to record, such as ``{"openreg": ["GPU_MEMCPY"]}``.

    Raises:
        UsageError: an item is none of these, a kind is unknown, or a group is there twice.
    """
    if isinstance(activities, str | bytes | Mapping) or not isinstance(activities, Iterable):
        raise UsageError(f"activities is {activities!r}; expected a list, such as [{activities!r}]")
    wanted = tuple(_read(activities))
    names = [one.name for one in wanted]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UsageError(f"activities name {', '.join(repeated)} more than once; name each group once")
    return wanted


def _read(activities: Iterable[object]) -> Iterator[WantedActivity]:
    for item in activities:
        if isinstance(item, Mapping):
            yield from (WantedActivity(_name(key), _kinds(key, kinds)) for key, kinds in item.items())
        else:
            yield WantedActivity(_name(item))


def _name(item: object) -> str:
    if isinstance(item, str) and item.strip():
        return _OF_TEXT.get(item.strip().lower(), item.strip())
    if type(item).__name__ == "ProfilerActivity":  # ours or torch's, which renames a member with its backend
        for name in ProfilerActivity.__members__:
            if getattr(type(item), name, None) == item:
                return name
    raise UsageError(
        f"an activity is {item!r}; expected the name of a plugin, such as 'openreg', or a group: "
        f"{', '.join(repr(known) for known in _OF_TEXT)}, or a member of ProfilerActivity"
    )


def _kinds(key: object, names: object) -> frozenset[ActivityType]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise UsageError(f"the kinds of {key!r} are {names!r}; expected a list of names, such as ['GPU_MEMCPY']")
    return frozenset(_kind(key, name) for name in names)


def _kind(key: object, name: object) -> ActivityType:
    found = name if isinstance(name, ActivityType) else ActivityType.__members__.get(str(name).upper())
    if found is None:
        raise UsageError(
            f"a kind of {key!r} is {name!r}; expected one of {', '.join(ActivityType.__members__)} (names of ActivityType)"
        )
    return found
