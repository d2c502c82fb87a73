"""What CUPTI's and the driver's results mean to the person in front of the screen.

Source of the numbers: ``cupti_result.h`` and ``cuda.h``.
"""

from __future__ import annotations

from collections.abc import Mapping

from devprof.errors import CaptureError

__all__ = [
    "CudaUnavailableError",
    "CuptiError",
    "NoDriverError",
    "NoLibraryError",
    "NothingToTraceError",
    "advice_for",
]

_OTHER_PROFILER = (
    "Another profiler holds CUPTI in this process, perhaps Nsight, compute-sanitizer, cuda-gdb or a framework's profiler. Stop "
    "it, or run without it."
)
_UNSUPPORTED = "CUPTI does not support {}; there is nothing to switch on for that."

_ADVICE: Mapping[int, str] = {
    2: "CUPTI does not know this GPU. Use a libcupti and a driver that support it.",
    8: "CUPTI is out of memory, on the host or on the device. Free some, or record for a shorter time.",
    11: "This libcupti is too old to have the function. devprof needs that of CUDA 12.8 or newer.",
    14: "Another tool in this process uses CUPTI's subscriber API. devprof cannot share with it on this driver.",
    15: "This libcupti does not work with this driver. Use the libcupti of the driver's CUDA release, or an older one.",
    23: _OTHER_PROFILER,
    27: "This GPU or driver does not have the feature.",
    33: "Profiling is not allowed on this virtual GPU; the hypervisor's administrator decides.",
    35: (
        "The driver lets only administrators profile (ERR_NVGPUCTRPERM, "
        "https://developer.nvidia.com/ERR_NVGPUCTRPERM). Ask the administrator to set NVreg_RestrictProfilingToAdminUsers=0 "
        "for the nvidia module, or run with CAP_SYS_ADMIN (CAP_PERFMON from driver 565); in a container add "
        "`--cap-add=SYS_ADMIN`."
    ),
    39: _OTHER_PROFILER,
    40: "Profiling is not allowed on this virtual GPU; the hypervisor's administrator decides.",
    41: _UNSUPPORTED.format("GPUs in confidential computing mode"),
    42: _UNSUPPORTED.format("CMP (mining) GPUs"),
    43: _UNSUPPORTED.format("this MIG configuration"),
    44: _UNSUPPORTED.format("GPUs in SLI mode"),
    45: _UNSUPPORTED.format("this GPU under WSL"),
    999: (
        "CUPTI failed and does not say why; mostly it cannot work with this driver. See that `nvidia-smi` works, and use the "
        "libcupti of the driver's CUDA release, or an older one."
    ),
}


class CudaUnavailableError(CaptureError):
    """CUDA cannot be traced here or now; the message says why, and what to do."""


class NothingToTraceError(CudaUnavailableError):
    """What CUDA cannot do without is not here: a driver, a GPU, or libcupti. Only who asked for CUDA misses it."""


class NoDriverError(NothingToTraceError):
    """There is no NVIDIA driver here.

    Attributes:
        said: why its library does not load, in the loader's words.
    """

    def __init__(self, said: str) -> None:
        super().__init__(
            f"CUDA tracing is off: no NVIDIA driver here ({said}). In a container start it with GPU access (for Docker "
            "`--gpus all`)."
        )
        self.said = said

    def __reduce__(self) -> tuple[type[NoDriverError], tuple[str]]:
        return type(self), (self.said,)


class NoLibraryError(NothingToTraceError):
    """There is a driver, and no libcupti."""


class CuptiError(CaptureError):
    """A function of libcupti failed.

    Attributes:
        code: CUPTI's number of the result.
        function: the function.
    """

    def __init__(self, code: int, function: str, name: str = "") -> None:
        super().__init__(f"{function} answered {code} ({name or 'no name known'}). {advice_for(code)}".strip())
        self.code = code
        self.function = function
        self.name = name

    def __reduce__(self) -> tuple[type[CuptiError], tuple[int, str, str]]:
        return type(self), (self.code, self.function, self.name)


def advice_for(code: int) -> str:
    """Return what to do about a result of CUPTI, a sentence or two; empty where there is nothing to say."""
    return _ADVICE.get(code, "")
