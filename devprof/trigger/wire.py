"""Messages on the socket: one JSON object per line, small, from and to the same user only."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from typing import Any

from devprof.errors import UsageError

__all__ = ["VERSION", "Peer", "WireError", "hung_up", "peer_of", "receive", "send"]

VERSION = 1
"""Version of the messages; both sides refuse another one."""

_MOST_BYTES = 1 << 16
_CREDENTIALS = struct.Struct("3i")


class WireError(UsageError):
    """The other side said something that is no message."""


class Peer:
    """Who is at the other end, as the kernel says.

    Attributes:
        pid, uid: of the process that connected, or that listens.
    """

    __slots__ = ("pid", "uid")

    def __init__(self, pid: int, uid: int) -> None:
        self.pid = pid
        self.uid = uid

    @property
    def is_same_user(self) -> bool:
        """True for the user of this process; root is another one."""
        return self.uid == os.geteuid()


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end of a Unix socket."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return Peer(pid, uid)


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send a message.

    Raises:
        OSError: the other side is gone, or does not read.
    """
    connection.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")


def receive(connection: socket.socket, timeout_s: float | None) -> dict[str, Any] | None:
    """Return the next message, or None where the other side has ended.

    Nothing is read beyond the line's end, so the next call finds the next message.

    Args:
        connection: a connected socket.
        timeout_s: for the whole message, however slowly it trickles; None: wait.

    Raises:
        TimeoutError: it did not come in time.
        WireError: it is no message, or too long.
        OSError: the connection broke.
    """
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) >= _MOST_BYTES:
            raise WireError(f"the message is longer than {_MOST_BYTES} bytes")
        left_s = None if deadline_s is None else deadline_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            raise TimeoutError("no message came in time")
        connection.settimeout(left_s)
        seen = connection.recv(_MOST_BYTES - len(line), socket.MSG_PEEK)
        if not seen:
            return None
        cut = seen.find(b"\n")
        line += connection.recv(len(seen) if cut < 0 else cut + 1)
    return _parsed(bytes(line))


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError("the message is no JSON") from error
    if not isinstance(message, dict) or message.get("version") != VERSION:
        raise WireError(f"expected a message of version {VERSION}; is the other side another release of devprof?")
    return message


def hung_up(connection: socket.socket, wake: socket.socket, timeout_s: float) -> bool:
    """Wait until the other side ends, `wake` can be read, or the time is over; say whether the other side has ended."""
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    ready = {fd for fd, _ in poll.poll(max(0.0, timeout_s) * 1000)}
    return connection.fileno() in ready
