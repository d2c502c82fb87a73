"""The other side: find who listens, ask, and wait for the answer."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devprof.errors import CaptureError, SessionError, UsageError
from devprof.trigger.places import address_of, addresses, check_private, owner_of
from devprof.trigger.request import Answer, CaptureRequest
from devprof.trigger.wire import VERSION, peer_of, receive, send

__all__ = ["Attached", "Listening", "attach", "listening"]

_CONNECT_S = 5.0
_RETRY_S = 0.02
_HOW = (
    "a program opts in with DEVPROF_ON_DEMAND=1 in its environment (it takes effect with `import torch`, or with the first use "
    "of a name of devprof), or with devprof.on_demand() in its code"
)


@dataclass(frozen=True, slots=True)
class Listening:
    """A process that listens.

    Attributes:
        pid: its id.
        command: its command line, as far as the kernel says.
    """

    pid: int
    command: str


def listening() -> list[Listening]:
    """Return this user's processes that listen.

    Raises:
        UsageError: the folder of sockets is not private.
    """
    return [Listening(one.pid, _command(one.pid)) for one in addresses() if _answers(one.path)]


def attach(pid: int, request: CaptureRequest, recording: Callable[[], object] = lambda: None) -> Answer:
    """Have a process recorded, and wait until its trace is written. A KeyboardInterrupt meanwhile ends the recording early.

    Args:
        pid: the process.
        request: what to record.
        recording: called when it records.

    Raises:
        UsageError: there is no such process, it does not listen, or it cannot do what is asked for.
        SessionError: it is profiling already.
        CaptureError: it began, and could not end.
    """
    with Attached(pid, request) as asked:
        try:
            return asked.answer(recording)
        except KeyboardInterrupt:
            asked.end()
            return asked.answer(recording)


class Attached:
    """A request that was sent; a context manager.

    Raises:
        UsageError: there is no such process, or it does not listen.
    """

    def __init__(self, pid: int, request: CaptureRequest) -> None:
        self._pid = pid
        self._connection = _connected(pid)
        self._has_begun = False
        with suppress(OSError):  # it has refused already: the answer says why
            send(self._connection, {"version": VERSION, "request": request.as_dict()})

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *of_the_error: object) -> None:
        self._connection.close()

    def end(self) -> None:
        """End the recording now; the answer still comes."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def answer(self, recording: Callable[[], object]) -> Answer:
        """Wait for what becomes of it; see `attach`."""
        while True:
            try:
                message = receive(self._connection, None)
            except ConnectionResetError:  # it ended and had not read all
                message = None
            except OSError as error:
                raise CaptureError(f"the connection to process {self._pid} broke: {error}") from error
            if message is None:
                when = "while it recorded" if self._has_begun else "before it recorded"
                raise CaptureError(f"process {self._pid} ended {when}; there is no trace")
            if message["state"] == "recording":
                self._has_begun = True
                recording()
            elif message["state"] == "written":
                return Answer.from_dict(message.get("answer") or {})
            else:
                raise _error(self._pid, message)


def _error(pid: int, message: dict[str, Any]) -> UsageError | CaptureError:
    text = f"process {pid}: {message.get('message', message.get('state'))}"
    if message.get("kind") == "busy":
        return SessionError(text)
    return UsageError(text) if message.get("state") == "refused" else CaptureError(text)


def _connected(pid: int) -> socket.socket:
    address = address_of(pid) if pid > 0 else None
    if address is None:
        raise UsageError(f"no such process: {pid}")
    _check_owner(pid)
    try:
        check_private(address.path.parent)
    except FileNotFoundError:
        raise UsageError(f"process {pid} is not listening: {_HOW}") from None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(connection, address.path)
        peer = peer_of(connection)
    except FileNotFoundError:
        connection.close()
        raise UsageError(f"process {pid} is not listening: {_HOW}") from None
    except ConnectionRefusedError:
        connection.close()
        raise UsageError(
            f"process {pid} is not listening any more: it closed its listener, or became another program"
        ) from None
    except OSError as error:
        connection.close()
        raise CaptureError(f"process {pid} does not answer: {error}") from error
    if not peer.is_same_user or peer.pid != pid:
        connection.close()
        raise UsageError(
            f"{address.path} belongs to process {peer.pid} of user {peer.uid}, not to process {pid} of this user"
        )
    return connection


def _check_owner(pid: int) -> None:
    owner = owner_of(pid)
    if owner is not None and owner != os.geteuid():
        raise UsageError(
            f"process {pid} belongs to user {owner}; only that user can attach, and this is user {os.geteuid()}"
        )


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, suppress(OSError):
        _connect(connection, path)
        return True
    return False


def _connect(connection: socket.socket, path: Path) -> None:
    """Connect, and wait where others do: a Unix socket refuses who finds its queue full, unless he waits without a limit."""
    deadline_s = time.monotonic() + _CONNECT_S
    connection.settimeout(_CONNECT_S)
    while True:
        try:
            connection.connect(str(path))
            return
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"too many others wait for it, still after {_CONNECT_S:g} s") from None
            time.sleep(_RETRY_S)


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words if word)
