"""What a trace says of the profile that made it."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping

from devprof import __version__
from devprof.capture.hosting import ProfileOptions
from devprof.contract import CONTRACT_VERSION
from devprof.errors import UsageError
from devprof.profiler.ranks import rank_here

__all__ = ["fact_of", "facts_of", "json_of"]


def facts_of(host: str, options: ProfileOptions, trace_id: str, metadata: Mapping[str, object]) -> dict[str, object]:
    """Return the facts of a trace, JSON values.

    Args:
        host: name of the host.
        options: what the user asked for.
        trace_id: id of the trace.
        metadata: what the user added.
    """
    rank = rank_here()
    job = {} if rank is None else {"distributedInfo": rank.as_dict()}
    return {
        "devprof_version": __version__,
        "contract": list(CONTRACT_VERSION),
        "host": host,
        "host_name": socket.gethostname(),
        "trace_id": trace_id,
        "record_shapes": options.record_shapes,
        "profile_memory": options.profile_memory,
        "with_stack": options.with_stack,
        "with_flops": options.with_flops,
        "with_modules": options.with_modules,
        "metadata": {**job, **metadata},
    }


def json_of(key: object, value: object) -> str:
    """Return a value of the user's metadata as JSON text.

    Raises:
        UsageError: it has no words in JSON.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"metadata {key!r} has no words in JSON ({error}); expected a text") from None


def fact_of(key: object, value: str) -> object:
    """Return what JSON text of the user's metadata says.

    Raises:
        UsageError: it is no JSON, or the key is no text.
    """
    if not isinstance(key, str):
        raise UsageError(f"a key of the metadata is {key!r}; expected a text")
    try:
        return json.loads(value, parse_constant=_refuse)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"metadata {key!r} is {value!r:.200}, which is no JSON text ({error}); see add_metadata"
        ) from None


def _refuse(constant: str) -> object:
    raise ValueError(f"JSON has no {constant}")
