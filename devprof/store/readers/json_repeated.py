"""Keys that stand twice in an event or in its args. A decoder keeps the last value and does not say so; this counts them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

__all__ = ["REPEATED", "may_repeat", "repeated_keys"]

REPEATED = "key that is in its object already, of which the last value is taken"
"""What is said of them in the facts of a file, under ``not_strict``."""


class _Pairs(list[tuple[str, Any]]):
    """An object with its keys as they are written."""


# digits are not looked at, and texts have no limit as Python's whole numbers do
_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=str, parse_float=str)


def may_repeat(text: bytes, n_keys: int) -> bool:
    """Say whether a text may hold a key twice: whether it seems to have another number of keys than were found in it.

    Args:
        text: JSON.
        n_keys: how many keys its objects have, each counted once.
    """
    seeming = text.count(b'":')
    # in a text a quote has a backslash before it
    return seeming != n_keys and seeming - text.count(b'\\":') != n_keys


def repeated_keys(text: bytes | str) -> int:
    """Return how many keys of a list of events, and of their args, are in the same object already.

    Args:
        text: the list in JSON; one that Python's decoder does not take has none.
    """
    read = text if isinstance(text, str) else text.decode("utf-8", "replace")
    try:
        events = _DECODER.decode(read)
    except (ValueError, RecursionError):
        return 0
    return sum(_repeated(event) + sum(map(_repeated, _args(event))) for event in events if isinstance(event, _Pairs))


def _args(event: _Pairs) -> Iterable[_Pairs]:
    return (value for key, value in event if key == "args" and isinstance(value, _Pairs))


def _repeated(pairs: _Pairs) -> int:
    return len(pairs) - len({key for key, _ in pairs})
