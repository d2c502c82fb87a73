"""`ViewServer`: gives a browser on this machine the Perfetto UI and one trace, and nothing else.

A page on the web can make a browser ask 127.0.0.1 for anything, and can give its own name that address; another user of the
machine can connect. So every path begins with a secret, the request must name the server as the browser was told to, only
listed files exist, and answers may not be read, framed or kept by other pages.
"""

from __future__ import annotations

import json
import os
import secrets
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from devprof.cli.perfetto_ui import CONTENT_TYPES, content_security_policy

__all__ = ["ServedTrace", "ViewServer"]

_HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 20
_MOST_REQUESTS = 64
_POLL_S = 0.2
_QUIET_S = 2.0
_EXPAND = json.dumps([{"id": "dev.perfetto.ExpandTracksByRegex", "args": ["."]}])
"""What the UI does when the trace is loaded: it shows the rows of every process."""


@dataclass(frozen=True, slots=True)
class ServedTrace:
    """The one trace that a server serves.

    Attributes:
        name: what the UI calls it: letters, digits, ``.``, ``_`` and ``-``.
        descriptor: open file that holds it; the server reads it and does not close it.
    """

    name: str
    descriptor: int


class ViewServer(socketserver.ThreadingTCPServer):
    """Serves on 127.0.0.1; one thread per request, a bounded number at a time.

    Attributes:
        token: the secret in every path.
        files: the UI's files by their place in it.
        trace: the trace.
        policy: the Content-Security-Policy of every answer.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 32
    timeout = _POLL_S

    def __init__(
        self,
        files: Mapping[str, Path],
        trace: ServedTrace,
        *,
        port: int = 0,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to listen; nothing is answered before `serve`.

        Args:
            files: the UI, as `ui_files` returns it.
            trace: the trace.
            port: port to listen on; 0: a free one.
            clock_s: a clock, seconds.

        Raises:
            OSError: the port is taken.
        """
        self.token = secrets.token_urlsafe(32)
        self.files = dict(files)
        self.trace = trace
        self.policy = content_security_policy(files)
        self._clock_s = clock_s
        self._free = threading.BoundedSemaphore(_MOST_REQUESTS)
        self._lock = threading.Lock()
        self._in_flight = 0
        self._last_s = clock_s()
        self._trace_was_served = False
        super().__init__((_HOST, port), _Handler)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{_HOST}:{self.port}/{self.token}/"

    def serve(self, *, once: bool = False) -> None:
        """Answer requests until interrupted.

        Args:
            once: stop when the trace was served and the browser has asked for nothing for two seconds.
        """
        while not (once and self.is_done()):
            self.handle_request()

    def is_done(self) -> bool:
        """Say whether the trace was served and no further request has come for a while."""
        with self._lock:
            quiet_s = self._clock_s() - self._last_s
            return self._trace_was_served and not self._in_flight and quiet_s >= _QUIET_S

    def note_trace(self) -> None:
        """A browser has received the whole trace."""
        self._trace_was_served = True

    @contextmanager
    def _request(self) -> Iterator[None]:
        with self._lock:
            self._in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1
                self._last_s = self._clock_s()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless too many are open: then it is closed unanswered."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one request, on a thread of its own."""
        try:
            with self._request():
                super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser went away in the middle; nobody is left to tell."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; the connection is closed after it."""

    server: ViewServer
    timeout = 30  # s without a byte from the browser

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Send what a file is."""
        self._answer(with_body=False)

    def _refuse_method(self) -> None:
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse_method

    def _answer(self, *, with_body: bool) -> None:
        if not self._names_this_server():
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif (place := self._place()) is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif place == "":
            self._send_to_ui()
        elif place == self.server.trace.name:
            self._send(self.server.trace.descriptor, "application/octet-stream", with_body)
            if with_body:
                self.server.note_trace()
        elif (path := self._ui_file(place)) is not None:
            with path.open("rb") as file:
                self._send(file.fileno(), CONTENT_TYPES[path.suffix], with_body)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _names_this_server(self) -> bool:
        """Say whether the browser was sent here by this address, and not by a name that somebody pointed at it."""
        named = self.headers.get_all("Host", [])
        return len(named) == 1 and named[0].lower() in {f"{name}:{self.server.port}" for name in (_HOST, "localhost")}

    def _place(self) -> str | None:
        """Return what is asked for, below the secret; None where the secret is wrong."""
        path = self.path.partition("?")[0].encode("utf-8", "surrogateescape")
        prefix = f"/{self.server.token}/".encode()
        if not secrets.compare_digest(path[: len(prefix)], prefix):
            return None
        return path[len(prefix) :].decode("ascii", "replace")

    def _ui_file(self, place: str) -> Path | None:
        folder, slash, name = place.partition("/")
        return self.server.files.get(name or "index.html") if folder + slash == "ui/" else None

    def _send_to_ui(self) -> None:
        trace = f"http://{self.headers['Host'].lower()}/{self.server.token}/{self.server.trace.name}"
        route = urlencode({"hideSidebar": "true", "startupCommands": _EXPAND, "url": trace})
        self.send_response(HTTPStatus.FOUND)
        self.send_header("Location", f"/{self.server.token}/ui/#!/?{route}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, descriptor: int, content_type: str, with_body: bool) -> None:
        size = os.fstat(descriptor).st_size
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        at = 0
        while with_body and at < size:
            chunk = os.pread(descriptor, min(_CHUNK_BYTES, size - at), at)
            if not chunk:
                raise OSError("the file became shorter while it was sent")
            self.wfile.write(chunk)
            at += len(chunk)

    def end_headers(self) -> None:
        """Add what every answer carries: not to be kept, read or framed by other pages."""
        for key, value in (
            ("Content-Security-Policy", self.server.policy),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(key, value)
        super().end_headers()

    def version_string(self) -> str:
        """Name the server, without versions."""
        return "devprof"

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal for the command; the paths would show the secret."""
