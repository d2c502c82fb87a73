"""`NativeExchange`: an `Exchange` whose functions run without Python, where ``devprof build cupti`` was run."""

from __future__ import annotations

import ctypes as c
import errno
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuda_cupti.binding import BufferCompleted, BufferRequested
from cuda_cupti.build_spec import CUPTI
from cuda_cupti.exchange import BUFFER_BYTES, KEPT_BUFFERS, READY_BUFFERS, BufferState, Exchange, FilledBuffer
from cuda_cupti.python_exchange import PythonExchange
from devprof.errors import BuildError
from devprof.native import load

__all__ = ["NativeExchange", "new_exchange"]

_i64, _ptr = c.c_int64, c.c_void_p

_SIGNATURES: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "begin": (c.c_int32, (_i64, _i64)),
    "end": (None, ()),
    "trim": (None, (_i64,)),
    "next": (c.c_int32, (_ptr,)),
    "post": (None, (_i64,)),
    "give_back": (None, (_ptr,)),
    "give_up": (None, (_i64,)),
    "counts": (None, (_i64, _ptr)),
}
_OUTSTANDING, _LOANS, _STRANGE, _REFUSED = 3, 4, 5, 6
_COUNTS = 7


def new_exchange() -> Exchange:
    """Return the native exchange where it is built, else one in Python."""
    try:
        return NativeExchange(load(CUPTI))
    except BuildError:
        return PythonExchange()


@dataclass(frozen=True, slots=True)
class _Filled:
    """A `FilledBuffer` of the library's."""

    address: int
    valid_bytes: int

    def valid(self) -> memoryview:
        return memoryview((c.c_uint8 * self.valid_bytes).from_address(self.address)).cast("B")


class NativeExchange:
    """Implements `cuda_cupti.exchange.Exchange`; one per loaded library, because CUPTI hands its functions no context.

    Source of the functions: ``csrc/exchange.cpp``. Every call drops the GIL.
    """

    def __init__(self, library: c.CDLL, size_bytes: int = BUFFER_BYTES) -> None:
        """Take a loaded library.

        Args:
            library: what ``devprof build cupti`` built.
            size_bytes: size of each buffer, whole pages.
        """
        self._size_bytes = size_bytes
        self._functions = {name: getattr(library, f"devprof_cupti_{name}") for name in _SIGNATURES}
        for name, (result, arguments) in _SIGNATURES.items():
            self._functions[name].restype, self._functions[name].argtypes = result, arguments
        self.requested: Any = c.cast(library.devprof_cupti_requested, BufferRequested)
        self.completed: Any = c.cast(library.devprof_cupti_completed, BufferCompleted)

    @property
    def strange(self) -> int:
        """Completions of memory that was not lent, or was given back before."""
        return self._counts()[_STRANGE]

    @property
    def refused(self) -> int:
        """Requests of a session for which there was no memory."""
        return self._counts()[_REFUSED]

    @property
    def loans(self) -> int:
        """How many buffers were lent so far."""
        return self._counts()[_LOANS]

    def begin(self) -> None:
        """Start a session; see `Exchange.begin`.

        Raises:
            OSError: there is no memory for buffers.
        """
        if self._functions["begin"](self._size_bytes, READY_BUFFERS):
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    def end(self) -> None:
        """End the session; see `Exchange.end`."""
        self._functions["end"]()

    def trim(self) -> None:
        """Return memory to the system; see `Exchange.trim`."""
        self._functions["trim"](KEPT_BUFFERS)

    def next(self) -> FilledBuffer | int:
        """Wait for a completed buffer or a signal."""
        found = (_i64 * 2)()
        is_buffer = self._functions["next"](c.addressof(found))
        return _Filled(found[0], found[1]) if is_buffer else found[0]

    def post(self, signal: int) -> None:
        """Send a signal."""
        self._functions["post"](signal)

    def give_back(self, buffer: FilledBuffer) -> None:
        """Clear a decoded buffer, for the next request."""
        self._functions["give_back"](buffer.address)

    def outstanding(self, loans: int) -> int:
        """Return how many buffers CUPTI holds; see `Exchange.outstanding`."""
        return self._counts(loans)[_OUTSTANDING]

    def give_up(self, loans: int) -> None:
        """Wait for buffers no more; see `Exchange.give_up`."""
        self._functions["give_up"](loans)

    def states(self) -> Counter[BufferState]:
        """Count the buffers by owner."""
        return Counter({state: n for state, n in zip(BufferState, self._counts(), strict=False) if n})

    def _counts(self, loans: int = 0) -> list[int]:
        found = (_i64 * _COUNTS)()
        self._functions["counts"](loans, c.addressof(found))
        return list(found)
