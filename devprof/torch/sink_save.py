"""Torch's `save` of a finished profile, as often as wanted.

Kineto writes a trace as often as it is asked to; torch refuses the second time. Here the first save is torch's own and costs
nothing more; a refused one goes through the sink, which has Kineto write the same bytes again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devprof.errors import BuildError, UsageError

__all__ = ["SaveWrap"]

_REFUSAL = "already saved"  # torch/csrc/profiler/kineto_shim.cpp


class SaveWrap:
    """Replaces `save` of torch's result type, reversibly. One per process."""

    def __init__(self) -> None:
        self._original: Callable[..., Any] | None = None

    def install(self) -> None:
        """Replace it; does nothing when that is done already."""
        if self._original is not None:
            return
        original = self._original = torch._C._autograd._ProfilerResult.save

        def save(self: Any, path: str) -> None:
            """Write the trace as a Chrome trace; devprof lets it be written again."""
            _save(original, self, path)

        torch._C._autograd._ProfilerResult.save = save  # type: ignore[method-assign]

    def uninstall(self) -> None:
        """Put torch's own back."""
        if self._original is not None:
            torch._C._autograd._ProfilerResult.save = self._original  # type: ignore[method-assign]
            self._original = None


def _save(original: Callable[..., Any], result: Any, path: str) -> None:
    if result.trace_start_ns() == 0:
        raise RuntimeError(
            "this profile holds no trace, because another profile ended it inside torch or it was stopped on another thread "
            "than it was started on; torch would crash here"
        )
    try:
        original(result, path)
    except RuntimeError as error:
        if _REFUSAL not in str(error):
            raise
        _save_again(result, path, error)


def _save_again(result: Any, path: str, refusal: RuntimeError) -> None:
    from devprof.torch.sink_native import save

    try:
        save(result, path)
    except (BuildError, UsageError) as error:
        refusal.add_note(f"devprof saves a profile again where its native part can be had: {error}")
        raise refusal from error
