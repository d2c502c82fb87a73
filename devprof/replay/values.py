"""What a plugin's methods return, as JSON values and back; nothing that is read here can become code."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from devprof.contract import TraceStatus
from devprof.errors import TraceFileError
from devprof.model import DeviceInfo, ResourceInfo

__all__ = ["Unrecorded", "decoded", "encoded"]

_PLACES = {"DeviceInfo": DeviceInfo, "ResourceInfo": ResourceInfo}
_DEEPEST = 50


class Unrecorded:
    """Stands for a value that a recording does not hold, such as an object of the plugin's own."""

    def __init__(self, kind: str) -> None:
        """Remember the name of its type."""
        self.kind = kind

    def __repr__(self) -> str:
        return f"<a {self.kind} that was not recorded>"


def encoded(value: object) -> Any:
    """Return a value as JSON values; what JSON lacks is marked by an object with one key that begins with ``$``."""
    if value is None or isinstance(value, bool | str):
        return value if not isinstance(value, str) else str.__str__(value)
    if isinstance(value, TraceStatus):
        return {"$TraceStatus": value.name}
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else {"$unrecorded": "very long int"}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, DeviceInfo | ResourceInfo):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {f"${type(value).__name__}": encoded(fields)}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"$map": [[str(key), encoded(item)] for key, item in value.items()]}
    return {"$unrecorded": type(value).__name__}


def decoded(value: Any, depth: int = 0) -> Any:
    """Return what `encoded` was given.

    Raises:
        TraceFileError: it is not what `encoded` makes.
    """
    if depth > _DEEPEST:
        raise TraceFileError(f"a value is nested deeper than {_DEEPEST} levels")
    if isinstance(value, list):
        return [decoded(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        ((mark, content),) = value.items()
        return _marked(mark, content, depth)
    except (TypeError, ValueError, KeyError) as error:
        raise TraceFileError(f"a value is no recorded one: {error}") from error


def _marked(mark: str, content: Any, depth: int) -> Any:
    match mark:
        case "$map":
            return {str(key): decoded(item, depth + 1) for key, item in content}
        case "$float":
            return float(content)
        case "$TraceStatus":
            return TraceStatus[content]
        case "$DeviceInfo" | "$ResourceInfo":
            return _PLACES[mark[1:]](**decoded(content, depth + 1))
        case "$unrecorded":
            return Unrecorded(str(content))
    raise ValueError(f"unknown mark {mark!r}")
