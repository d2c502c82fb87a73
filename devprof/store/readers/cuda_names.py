"""Numbers that CUPTI gives to calls and kinds of memory, by name.

Source: the enumerations of CUPTI's public headers (`CUpti_runtime_api_trace_cbid`, `CUpti_ActivityMemcpyKind`,
`CUpti_ActivityMemoryKind`, `CUpti_ActivitySynchronizationType`), and the words that Kineto prints for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["COPY_KINDS", "MEMORY_KINDS", "SYNC_KINDS", "call_name", "is_driver_call", "is_launch_call", "runtime_call"]

COPY_KINDS: Mapping[int, str] = dict(
    enumerate(("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"), start=1)
)
MEMORY_KINDS: Mapping[int, str] = dict(
    enumerate(("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"), start=1)
)
SYNC_KINDS: Mapping[int, str] = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}

_RUNTIME_CALLS = {
    3: "GetDeviceCount", 4: "GetDeviceProperties", 8: "ConfigureCall", 9: "SetupArgument", 10: "GetLastError",
    11: "PeekAtLastError", 13: "Launch", 14: "FuncSetCacheConfig", 15: "FuncGetAttributes", 16: "SetDevice",
    17: "GetDevice", 19: "SetDeviceFlags", 20: "Malloc", 21: "MallocPitch", 22: "Free", 23: "MallocArray",
    24: "FreeArray", 25: "MallocHost", 26: "FreeHost", 27: "HostAlloc", 28: "HostGetDevicePointer", 30: "MemGetInfo",
    31: "Memcpy", 32: "Memcpy2D", 33: "MemcpyToArray", 39: "MemcpyToSymbol", 40: "MemcpyFromSymbol",
    41: "MemcpyAsync", 44: "Memcpy2DAsync", 47: "MemcpyToSymbolAsync", 48: "MemcpyFromSymbolAsync", 49: "Memset",
    50: "Memset2D", 51: "MemsetAsync", 52: "Memset2DAsync", 55: "BindTexture", 58: "UnbindTexture",
    123: "ThreadExit", 126: "ThreadSynchronize", 129: "StreamCreate", 130: "StreamDestroy", 131: "StreamSynchronize",
    132: "StreamQuery", 133: "EventCreate", 134: "EventCreateWithFlags", 135: "EventRecord", 136: "EventDestroy",
    137: "EventSynchronize", 138: "EventQuery", 139: "EventElapsedTime", 140: "Malloc3D", 144: "Memcpy3D",
    145: "Memcpy3DAsync", 147: "StreamWaitEvent", 151: "PointerGetAttributes", 152: "HostRegister",
    153: "HostUnregister", 154: "DeviceCanAccessPeer", 155: "DeviceEnablePeerAccess", 160: "MemcpyPeer",
    161: "MemcpyPeerAsync", 164: "DeviceReset", 165: "DeviceSynchronize", 197: "StreamAddCallback",
    198: "StreamCreateWithFlags", 200: "DeviceGetAttribute", 201: "StreamDestroy", 202: "StreamCreateWithPriority",
    203: "StreamGetPriority", 205: "DeviceGetStreamPriorityRange", 206: "MallocManaged",
    207: "OccupancyMaxActiveBlocksPerMultiprocessor", 210: "OccupancyMaxActiveBlocksPerMultiprocessor",
    211: "LaunchKernel", 213: "Launch_ptsz", 214: "LaunchKernel_ptsz", 215: "Memcpy_ptds", 225: "MemcpyAsync_ptsz",
    233: "Memset_ptds", 235: "MemsetAsync_ptsz", 239: "StreamSynchronize_ptsz", 242: "EventRecord_ptsz",
    247: "StreamWaitEvent_ptsz", 251: "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 252: "MemPrefetchAsync",
    269: "LaunchCooperativeKernel", 270: "LaunchCooperativeKernel_ptsz", 272: "LaunchCooperativeKernelMultiDevice",
    273: "FuncSetAttribute", 284: "LaunchHostFunc", 310: "GraphInstantiate", 311: "GraphLaunch",
    312: "GraphLaunch_ptsz", 315: "StreamBeginCapture", 317: "StreamIsCapturing", 319: "StreamEndCapture",
    370: "EventRecordWithFlags", 373: "MallocAsync", 375: "FreeAsync", 430: "LaunchKernelExC",
    431: "LaunchKernelExC_ptsz",
}  # fmt: skip

_LAUNCH = re.compile(r"_*cu(da)?(Graph)?Launch(?!HostFunc)")


def runtime_call(cbid: int) -> str | None:
    """Return the name of a runtime call, or None where its number is not known here."""
    name = _RUNTIME_CALLS.get(cbid)
    return None if name is None else f"cuda{name}"


def call_name(text: str) -> str:
    """Return a call's name without its version: ``cudaLaunchKernel`` of ``cudaLaunchKernel_v7000``."""
    head, mark, tail = text.rpartition("_v")
    return head if mark and tail.isdigit() and text.startswith(("cuda", "__cuda")) else text


def is_driver_call(name: str) -> bool:
    """Say whether a call is one of the driver's, not of the runtime's."""
    return name.startswith("cu") and not name.startswith("cuda")


def is_launch_call(name: str) -> bool:
    """Say whether a call starts kernels."""
    return _LAUNCH.match(name) is not None
