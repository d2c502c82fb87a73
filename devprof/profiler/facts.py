"""What a trace says of the profile that made it."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from devprof import __version__
from devprof.capture.hosting import ProfileOptions
from devprof.contract import CONTRACT_VERSION
from devprof.profiler.ranks import rank_here

__all__ = ["facts_of"]


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
