"""NVIDIA's driver: is it there, how old is it, which GPUs does it show, and waiting for them.

Source: ``cuda.h``: the numbers of ``CUdevice_attribute`` and ``CUresult``.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cuda_cupti.devices import DeviceFacts
from cuda_cupti.errors import CudaUnavailableError, NoDriverError, NothingToTraceError

__all__ = ["PROTOTYPES", "Driver", "load_driver"]

_int, _ptr = c.c_int, c.c_void_p

_prototype: Callable[..., Any] = c.CFUNCTYPE

PROTOTYPES: Mapping[str, Any] = {
    name: _prototype(_int, *arguments)
    for name, arguments in {
        "cuInit": (c.c_uint,),
        "cuDriverGetVersion": (c.POINTER(_int),),
        "cuGetErrorName": (_int, c.POINTER(c.c_char_p)),
        "cuDeviceGetCount": (c.POINTER(_int),),
        "cuDeviceGet": (c.POINTER(_int), _int),
        "cuDeviceGetName": (_ptr, _int, _int),
        "cuDeviceGetUuid": (_ptr, _int),
        "cuDeviceTotalMem_v2": (c.POINTER(c.c_size_t), _int),
        "cuDeviceGetAttribute": (c.POINTER(_int), _int, _int),
        "cuDevicePrimaryCtxGetState": (_int, c.POINTER(c.c_uint), c.POINTER(_int)),
        "cuDevicePrimaryCtxRetain": (c.POINTER(_ptr), _int),
        "cuDevicePrimaryCtxRelease_v2": (_int,),
        "cuCtxPushCurrent_v2": (_ptr,),
        "cuCtxPopCurrent_v2": (c.POINTER(_ptr),),
        "cuCtxSynchronize": (),
    }.items()
}
"""Prototypes by name; every call drops the GIL."""

_ATTRIBUTES = {
    "max_threads_per_block": 1,
    "shared_mem_per_block": 8,
    "warp_size": 10,
    "regs_per_block": 12,
    "num_sms": 16,
    "max_threads_per_multiprocessor": 39,
    "compute_major": 75,
    "compute_minor": 76,
    "shared_mem_per_multiprocessor": 81,
    "regs_per_multiprocessor": 82,
    "shared_mem_per_block_optin": 97,
    "max_blocks_per_multiprocessor": 106,
    "reserved_shared_mem_per_block": 111,
}
"""`CUdevice_attribute` of each fact."""

_NO_GPU = 100  # CUDA_ERROR_NO_DEVICE

_START_ADVICE = {
    3: "CUDA was started before a fork, and does not work in the child. Start children with multiprocessing's 'spawn'.",
    34: (
        "The libcuda.so.1 that was loaded is the CUDA toolkit's stub, for linking only. Take its folder (lib64/stubs) out of "
        "LD_LIBRARY_PATH, so that the driver's own is found."
    ),
    46: "The GPU is taken, or closed to programs. `nvidia-smi -q -d COMPUTE,PIDS` shows its compute mode and who uses it.",
    _NO_GPU: "The driver shows no GPU. Look at CUDA_VISIBLE_DEVICES and `nvidia-smi`; a container needs GPU access.",
    101: "A GPU that was asked for is not valid. Compare CUDA_VISIBLE_DEVICES with `nvidia-smi -L`, MIG instances included.",
    304: "The system refused the driver. See that this user may open /dev/nvidia*; a container needs GPU access.",
    500: "The driver's library lacks functions, so it is not whole or not NVIDIA's. Install the driver again.",
    802: (
        "The system is not ready for CUDA yet. On machines with NVSwitch start the fabric manager of the driver's release "
        "(`systemctl status nvidia-fabricmanager`), and try again."
    ),
    803: "The driver's kernel module and its libraries are of different releases. Reboot, or load the matching module.",
    804: "The compatibility package does not support this GPU. Take its folder out of LD_LIBRARY_PATH.",
    805: "The MPS server cannot be reached. Start it, or take CUDA_MPS_PIPE_DIRECTORY out of the environment.",
    999: "The driver failed to start. `nvidia-smi` and the system's log say more.",
}
_OTHER_ADVICE = "See that `nvidia-smi` works, then that a small CUDA program does."


class Driver:
    """A loaded libcuda. Usable from any thread."""

    def __init__(self, functions: Mapping[str, Callable[..., int]]) -> None:
        """Take the driver's functions, and ask its version: that needs no GPU and starts nothing."""
        self._functions = dict(functions)
        found = _int()
        self._attempt("cuDriverGetVersion", c.byref(found))
        self.version = found.value

    @property
    def release(self) -> str:
        """The newest CUDA release that the driver supports, such as ``"13.0"``."""
        return f"{self.major}.{self.version % 1000 // 10}"

    @property
    def major(self) -> int:
        """The newest major CUDA release that the driver supports, 0 where it does not say."""
        return self.version // 1000

    def start(self) -> None:
        """Start the driver in this process, as every use of CUDA does.

        Raises:
            NothingToTraceError: it shows no GPU.
            CudaUnavailableError: it does not start.
        """
        if code := self._attempt("cuInit", 0):
            kind = NothingToTraceError if code == _NO_GPU else CudaUnavailableError
            advice = _START_ADVICE.get(code, _OTHER_ADVICE)
            raise kind(f"CUDA tracing is off: the driver answered {self.describe(code)}. {advice}")

    def devices(self) -> dict[int, DeviceFacts]:
        """Return the GPUs that this process may use, by their index. Needs `start`."""
        found = _int()
        count = 0 if self._attempt("cuDeviceGetCount", c.byref(found)) else found.value
        return {index: self._device(index) for index in range(count)}

    def describe(self, code: int) -> str:
        """Return the driver's own name of a result, with its number."""
        text = c.c_char_p()
        self._attempt("cuGetErrorName", code, c.byref(text))
        return f"{(text.value or b'an unknown error').decode('utf-8', 'replace')} ({code})"

    @contextmanager
    def primary_context(self, device: int) -> Iterator[int | None]:
        """Make the primary context of a device current on this thread; None where nothing has made it yet."""
        context = _ptr()
        if not self._is_active(device) or self._attempt("cuDevicePrimaryCtxRetain", c.byref(context), device):
            yield None
            return
        pushed = self._attempt("cuCtxPushCurrent_v2", context) == 0
        try:
            yield context.value if pushed else None
        finally:
            if pushed:
                self._attempt("cuCtxPopCurrent_v2", c.byref(_ptr()))
            self._attempt("cuDevicePrimaryCtxRelease_v2", device)

    def wait(self) -> str:
        """Wait for all work of the current context; return what the driver says is wrong, empty where nothing is."""
        code = self._attempt("cuCtxSynchronize")
        return self.describe(code) if code else ""

    def _is_active(self, device: int) -> bool:
        flags, active = c.c_uint(), _int()
        return self._attempt("cuDevicePrimaryCtxGetState", device, c.byref(flags), c.byref(active)) == 0 and bool(
            active.value
        )

    def _device(self, index: int) -> DeviceFacts:
        device, memory = _int(), c.c_size_t()
        self._attempt("cuDeviceGet", c.byref(device), index)
        self._attempt("cuDeviceTotalMem_v2", c.byref(memory), device.value)
        facts = {name: self._attribute(number, device.value) for name, number in _ATTRIBUTES.items()}
        return DeviceFacts(
            index, name=self._name(device.value), uuid=self._uuid(device.value), total_global_mem=memory.value, **facts
        )

    def _name(self, device: int) -> str:
        text = c.create_string_buffer(256)
        self._attempt("cuDeviceGetName", c.addressof(text), 255, device)
        return text.value.decode("utf-8", "replace")

    def _uuid(self, device: int) -> str:
        raw = (c.c_uint8 * 16)()
        if self._attempt("cuDeviceGetUuid", c.addressof(raw), device):
            return ""
        text = bytes(raw).hex()
        return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _attribute(self, number: int, device: int) -> int:
        found = _int()
        return 0 if self._attempt("cuDeviceGetAttribute", c.byref(found), number, device) else found.value

    def _attempt(self, function: str, *arguments: Any) -> int:
        return self._functions[function](*arguments) if function in self._functions else _ABSENT


_ABSENT = 500  # CUDA_ERROR_NOT_FOUND


def load_driver() -> Driver:
    """Load the driver's library. Nothing of CUPTI may be called before this has succeeded: some releases crash.

    Raises:
        NoDriverError: there is no driver.
    """
    try:
        library = c.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoDriverError(str(error)) from error
    return Driver(
        {name: of((name, library)) for name, of in PROTOTYPES.items() if getattr(library, name, None) is not None}
    )
