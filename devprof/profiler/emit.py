"""`emit_nvtx` and `emit_itt`: ranges for the tools of others, through the libraries that those tools keep.

Source: torch.autograd.profiler.emit_nvtx and emit_itt, with torch/csrc/profiler/standalone/{nvtx,itt}_observer.cpp behind them.
"""

from __future__ import annotations

import importlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, ClassVar, Self

from devprof.errors import SessionError, UsageError
from devprof.host import CallbackHandle, RangeEvent, add_global_callback, remove_callback

__all__ = ["emit_itt", "emit_nvtx"]

_GUARD = threading.Lock()
_DOMAIN = "devprof"


class _Open:
    """A range that was pushed: its text, the stack of its thread, and whether it has ended already."""

    __slots__ = ("has_ended", "stack", "text")

    def __init__(self, text: str, stack: list[_Open]) -> None:
        self.text, self.stack, self.has_ended = text, stack, False


class _Thread(threading.local):
    """What the calling thread has pushed, the innermost range last."""

    def __init__(self) -> None:
        self.stack: list[_Open] = []


class _Emitter(ABC):
    """Hands ranges to a library whose ranges are a stack per thread.

    Enabled between `__enter__` and `__exit__`, for the ranges of all threads. The library's stack takes only pushes and pops:
    of interleaved tasks, what lies above a range that is left is popped with it and pushed again. A range that is left on
    another thread ends when its own thread next enters or leaves one.
    """

    _package: ClassVar[str]
    _active: ClassVar[dict[str, _Emitter]] = {}

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        """Make one; nothing is loaded yet.

        Args:
            enabled: False makes it do nothing.
            record_shapes: add the sizes of each range's inputs, ``[]`` for what has none.
        """
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._thread = _Thread()
        self._handle: CallbackHandle | None = None

    def __enter__(self) -> Self:
        """Begin; from any thread.

        Raises:
            UsageError: the library is not installed.
            SessionError: one is enabled already.
        """
        if self.enabled:
            self._load(self._library())
            with _GUARD:
                if self._package in self._active:
                    raise SessionError(f"{type(self).__name__} is enabled already; leave that one first")
                self._active[self._package] = self
            self._handle = add_global_callback(self._begin, self._end, needs_inputs=self.record_shapes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End; ranges that are open on the calling thread end with it, those of other threads are left to the tool."""
        if self._handle is None:
            return
        remove_callback(self._handle)
        self._handle = None
        stack = self._thread.stack
        while stack:
            stack.pop()
            self._pop()
        with _GUARD:
            self._active.pop(self._package, None)

    @abstractmethod
    def _load(self, library: Any) -> None:
        """Take what is needed from the library."""

    @abstractmethod
    def _push(self, text: str) -> None:
        """Begin a range on the calling thread."""

    @abstractmethod
    def _pop(self) -> None:
        """End the innermost range of the calling thread."""

    @abstractmethod
    def _text(self, event: RangeEvent) -> str:
        """Return what a range is called."""

    def _library(self) -> Any:
        try:
            return importlib.import_module(self._package)
        except ImportError as error:
            raise UsageError(
                f"{type(self).__name__} needs the package {self._package}, which cannot be imported here ({error}): "
                f"pip install {self._package}"
            ) from error

    def _begin(self, event: RangeEvent) -> _Open:
        stack = self._thread.stack
        self._drop_ended(stack)
        opened = _Open(_clean(self._text(event)), stack)
        self._push(opened.text)
        stack.append(opened)
        return opened

    def _end(self, _event: RangeEvent, opened: _Open) -> None:
        stack = self._thread.stack
        opened.has_ended = True
        if opened.stack is not stack:
            return
        above: list[_Open] = []
        while opened in stack:
            above.append(stack.pop())
            self._pop()
        for one in reversed(above):
            if not one.has_ended:
                self._push(one.text)
                stack.append(one)
        self._drop_ended(stack)

    def _drop_ended(self, stack: list[_Open]) -> None:
        while stack and stack[-1].has_ended:
            stack.pop()
            self._pop()


class emit_nvtx(_Emitter):  # torch's name
    """While it is entered, every range is an NVTX range too, for Nsight Systems and other tools that listen.

    Ranges are called ``NAME, seq = N, sizes = [[2, 3], []]``, without what is not known or not asked for. The package nvtx
    keeps each distinct text for as long as a tool listens.

    Example:
        >>> with emit_nvtx(enabled=False):
        ...     pass
    """

    _package = "nvtx"

    def _load(self, library: Any) -> None:
        self._push_range, self._pop_range = library.push_range, library.pop_range

    def _push(self, text: str) -> None:
        self._push_range(text)

    def _pop(self) -> None:
        self._pop_range()

    def _text(self, event: RangeEvent) -> str:
        text = event.name if event.sequence_nr < 0 else f"{event.name}, seq = {event.sequence_nr}"
        return f"{text}, sizes = {_sizes(event.inputs)}" if self.record_shapes and event.inputs else text


class emit_itt(_Emitter):  # torch's name
    """While it is entered, every range is a task of Intel's ITT too, for VTune and other tools that listen.

    Tasks are called ``NAME, sizes = [[2, 3], []]``, the sizes only with `record_shapes`. VTune adds up tasks of one name, so a
    sequence number is not part of it.

    Example:
        >>> with emit_itt(enabled=False):
        ...     pass
    """

    _package = "ittapi"

    def _load(self, library: Any) -> None:
        self._domain = library.domain(_DOMAIN)
        self._task_begin, self._task_end, self._handle_of = library.task_begin, library.task_end, library.string_handle

    def _push(self, text: str) -> None:
        self._task_begin(self._domain, self._handle_of(text))

    def _pop(self) -> None:
        self._task_end(self._domain)

    def _text(self, event: RangeEvent) -> str:
        return f"{event.name}, sizes = {_sizes(event.inputs)}" if self.record_shapes and event.inputs else event.name


def _sizes(inputs: Sequence[object]) -> str:
    return f"[{', '.join(map(_size, inputs))}]"


def _size(value: Any) -> str:
    try:
        return f"[{', '.join(str(int(size)) for size in value.shape)}]"
    except Exception:  # noqa: BLE001  # no shape, or what a stranger's shape does when it is asked
        return "[]"


def _clean(text: str) -> str:
    """Return text that fits a C string in UTF-8."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
