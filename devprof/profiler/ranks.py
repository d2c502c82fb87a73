"""Which process of a distributed job this is."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

__all__ = ["Rank", "rank_here"]


@dataclass(frozen=True, slots=True)
class Rank:
    """Place of this process in its job.

    Attributes:
        rank: number of the process, from 0.
        world_size: number of processes, 0: unknown.
        backend: how they talk, empty: unknown.
    """

    rank: int
    world_size: int = 0
    backend: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the facts that a trace carries as ``distributedInfo``."""
        known = {"rank": self.rank, "world_size": self.world_size, "backend": self.backend}
        return {key: value for key, value in known.items() if key == "rank" or value}


def rank_here() -> Rank | None:
    """Return this process's rank: torch.distributed's where that is initialised, else that of ``RANK``; None: no job.

    Nothing is imported: a process group can only be there where torch is.
    """
    return _of_torch(sys.modules.get("torch.distributed")) or _of_environment()


def _of_torch(distributed: Any) -> Rank | None:
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return Rank(distributed.get_rank(), distributed.get_world_size(), str(distributed.get_backend()))
    except Exception:  # noqa: BLE001 - a half-imported or half-destroyed process group says nothing
        return None


def _of_environment() -> Rank | None:
    rank, size = (os.environ.get(name, "").strip() for name in ("RANK", "WORLD_SIZE"))
    if not rank.isdecimal():
        return None
    return Rank(int(rank), int(size) if size.isdecimal() else 0)
