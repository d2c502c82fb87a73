"""Who else in this process may hold CUPTI: there is one client, whatever the library says.

Nothing is imported here: a framework that the program did not load holds nothing.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from cuda_cupti.binding import Cupti
from cuda_cupti.errors import CudaUnavailableError, CuptiError, advice_for

__all__ = ["KINETO", "check_alone", "may_be_taken_over", "probe_subscription", "torch_has_cuda", "who_records"]

KINETO = "torch.profiler (Kineto)"

log = logging.getLogger("devprof.cuda_cupti")

_HELD = (39, 23)
_kept: list[ctypes.c_void_p] = []
"""Subscriptions of devprof's own that CUPTI did not take back."""


def check_alone(host: str) -> None:
    """Refuse where a framework's profiler records CUDA in this process now.

    Args:
        host: who records the host's side of the session: ``"torch"`` or ``"python"``.

    Raises:
        CudaUnavailableError: somebody does; the message names them.
    """
    if host == "torch" and torch_has_cuda():
        raise CudaUnavailableError(
            "Kineto holds CUPTI in this session: torch.profiler records CUDA itself. Ask it for ProfilerActivity.CUDA; "
            "devprof.trace_of(prof) then gives the whole trace, kernels included."
        )
    if name := who_records():
        raise CudaUnavailableError(
            f"{name} records in this process now and holds CUPTI. End its profile first, or take its trace: "
            "devprof.load reads Kineto's, devprof.trace_of a torch profile."
        )


def probe_subscription(cupti: Cupti) -> None:
    """Find out whether a tool outside of Python (Nsight, compute-sanitizer, cuda-gdb) holds CUPTI.

    Subscribes and gives the subscription back at once. Left out where torch is loaded: an older Kineto holds one for good after
    its first profile, which does not stand in the way, and would lose CUDA for good if it asked just now.

    Raises:
        CudaUnavailableError: another tool subscribes.
        CuptiError: CUPTI refuses for another reason, such as that users may not profile.
    """
    if "torch" in sys.modules or _left(cupti):
        return  # what devprof itself could not give back is nobody else's
    handle = ctypes.c_void_p()
    code = cupti.attempt("cuptiSubscribe", ctypes.byref(handle), ctypes.cast(_ignore, ctypes.c_void_p), None)
    if code in _HELD:
        raise CudaUnavailableError(f"{_injected()}{advice_for(code)}")
    if code:
        raise CuptiError(code, "cuptiSubscribe", cupti.describe(code))
    _kept.append(handle)
    if code := _left(cupti) and _left(cupti):  # once more: it may be a matter of the moment
        log.warning(
            "CUPTI does not take back a subscription of a moment (cuptiUnsubscribe answered %d); until it does, tools that "
            "subscribe find CUPTI held by this process. The next profile tries again.",
            code,
        )


def _left(cupti: Cupti) -> int:
    """Give back what an earlier call could not; return what CUPTI answers where it cannot be, 0 where nothing is left."""
    while _kept:
        if code := cupti.attempt("cuptiUnsubscribe", _kept[-1]):
            return code
        _kept.pop()
    return 0


def torch_has_cuda() -> bool:
    """Say whether torch is loaded and was built with CUDA, so that its Kineto can record it."""
    version = getattr(sys.modules.get("torch"), "version", None)
    return getattr(version, "cuda", None) is not None


def may_be_taken_over() -> bool:
    """Say whether a framework is loaded whose profiler could become CUPTI's client while devprof is it."""
    return torch_has_cuda() or any(name in sys.modules for name in ("jax", "triton"))


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)


_ignore = _Callback(lambda userdata, domain, cbid, data: None)
"""The subscriber; no domain is enabled, so nobody calls it."""


def who_records() -> str:
    """Name the framework's profiler that records CUDA in this process now, on whatever thread; empty where none does."""
    return next((name for name, is_recording in _OTHERS.items() if _answer(is_recording)), "")


def _torch_records() -> bool:
    """Say whether a Kineto that knows CUDA records.

    torch's own answer is for the calling thread only, and hooks run on a thread of devprof's; its Python side keeps a flag for
    the process.
    """
    autograd: Any = getattr(sys.modules.get("torch"), "autograd", None)
    if autograd is None or not torch_has_cuda():
        return False
    of_process = getattr(getattr(autograd, "profiler", None), "_is_profiler_enabled", False)
    return bool(of_process or autograd._profiler_enabled())


def _jax_records() -> bool:
    state: Any = getattr(sys.modules.get("jax._src.profiler"), "_profile_state", None)
    return getattr(state, "profile_session", None) is not None


def _proton_records() -> bool:
    module: Any = sys.modules.get("triton.profiler.flags")
    if module is None:
        return False
    if hasattr(module, "flags"):  # an object in later releases
        return bool(module.flags.profiling_on)
    return bool(module.get_profiling_on())


_OTHERS: Mapping[str, Callable[[], bool]] = {
    KINETO: _torch_records,
    "jax.profiler": _jax_records,
    "Triton's Proton": _proton_records,
}


def _answer(is_recording: Callable[[], bool]) -> bool:
    try:
        return is_recording()
    except Exception:  # noqa: BLE001  # a release that has it elsewhere; then nobody can tell
        return False


def _injected() -> str:
    path = os.environ.get("CUDA_INJECTION64_PATH", "")
    return f"{path} (CUDA_INJECTION64_PATH) was loaded into this process by a tool. " if path else ""
