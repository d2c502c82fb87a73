"""`run_host_side`: a recorded host's side under an unchanged torch.profiler."""

from __future__ import annotations

from devprof.replay import Player
from devprof.replay import run_host_side as run_ranges
from devprof.torch.forwarding import RangeForwarder

__all__ = ["run_host_side"]


def run_host_side(player: Player, *, paced: bool = True) -> int:
    """Run the recorded ops and ranges of the session that is live as ops and ranges of torch's; return how many there were.

    As `devprof.replay.run_host_side`, for a session of torch.profiler; one of `devprof.profile` sees the ranges without it.

    Args:
        player: of a `devprof.replay.ReplayProfiler` whose session has started.
        paced: as there. torch compares when a call was made with when its op ran, so this is True by default, and times in
            torch's sessions are live ones.
    """
    forwarder = RangeForwarder()
    forwarder.start()
    try:
        return run_ranges(player, paced=paced)
    finally:
        forwarder.stop()
