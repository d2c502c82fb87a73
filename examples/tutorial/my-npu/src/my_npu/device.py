"""The device, through its SDK: what programs call, and what the profiler asks."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from devprof import correlation

import npu_sdk

DEVICES = 1
STREAMS = 2
TICKS_PER_SECOND = npu_sdk.CLOCK_HZ

_OPCODES = {"gemm": npu_sdk.GEMM, "relu": npu_sdk.RELU}
_NAMES = {npu_sdk.GEMM: "gemm", npu_sdk.RELU: "relu", npu_sdk.MEMCPY: "copy to device"}


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a call on the host, in Unix ns, or of work on the device, in ticks."""

    kind: str
    name: str
    start: int
    end: int
    number: int
    device: int
    stream: int
    thread_id: int
    op_id: int
    user_id: int
    n_bytes: int = 0


_lock = threading.Lock()
_calls: dict[int, Record] = {}  # by the SDK's sequence number
_kinds: frozenset[str] = frozenset()
_is_on = False


# -- what programs call ------------------------------------------------------------------------------------------------


def launch(kernel: str, *, device: int = 0, stream: int = 0, ticks: int = 1_000) -> None:
    """Launch a kernel, and return before it has run."""
    _submit(_OPCODES[kernel], stream, ticks, 0)


def copy(n_bytes: int, *, device: int = 0, stream: int = 0) -> None:
    """Start to copy memory to the device, and return before it is copied."""
    _submit(npu_sdk.MEMCPY, stream, max(1, n_bytes // 100), n_bytes)


def synchronize() -> None:
    """Wait until the device has done all its work."""
    npu_sdk.drain()


def _submit(opcode: int, stream: int, ticks: int, n_bytes: int) -> None:
    start_ns = time.time_ns()
    number = npu_sdk.submit(opcode, stream, ticks, n_bytes)
    if _is_on:
        # here and now: the SDK's entry does not say who launched it
        ids, thread_id = correlation.current(), threading.get_native_id()
        call = Record("call", "npu_sdk.submit", start_ns, time.time_ns(), number, 0, 0, thread_id, *ids)
        with _lock:
            _calls[number] = call


# -- what the profiler asks --------------------------------------------------------------------------------------------


def now_ticks() -> int:
    """Read the device's clock."""
    return npu_sdk.read_clock()


def enable(kinds: frozenset[str]) -> None:
    """Keep records of these kinds from now on."""
    global _kinds, _is_on
    _kinds = _kinds | kinds
    _is_on = bool(kinds)
    npu_sdk.trace(_is_on)


def disable() -> None:
    """Keep no records from now on."""
    enable(frozenset())


def take() -> tuple[list[Record], int]:
    """Return the records that were kept and how many were lost, and forget both."""
    global _calls, _kinds
    entries, n_lost = npu_sdk.trace_read()
    with _lock:
        calls, _calls = _calls, {}
    kinds, _kinds = _kinds, frozenset()
    records = [*calls.values(), *(_work(entry, calls) for entry in entries)]
    return [record for record in records if record.kind in kinds], n_lost


def _work(entry: tuple[int, int, int, int, int, int], calls: dict[int, Record]) -> Record:
    opcode, begin, end, queue, number, n_bytes = entry
    call = calls.get(number)
    owner = (call.thread_id, call.op_id, call.user_id) if call else (0, 0, 0)
    kind = "copy" if opcode == npu_sdk.MEMCPY else "kernel"
    return Record(kind, _NAMES[opcode], begin, end, number, 0, queue, *owner, n_bytes)
