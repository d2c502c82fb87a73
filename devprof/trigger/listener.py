"""`Listener`: the opt-in. A thread that waits on this process's socket for requests, and does nothing else."""

from __future__ import annotations

import atexit
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devprof.errors import DevprofError, SessionError, UsageError
from devprof.trigger.capturing import Capture
from devprof.trigger.folder import Folder
from devprof.trigger.places import address_of, make_private, sweep
from devprof.trigger.request import CaptureRequest
from devprof.trigger.steps import Steps
from devprof.trigger.wire import VERSION, peer_of, receive, send

__all__ = ["Listener", "on_demand", "start_if_asked"]

log = logging.getLogger("devprof.trigger")

DEFAULT_FOLDER = "devprof-traces"
MAX_S = 60.0
_QUEUE = 64  # clients that may wait
_REQUEST_S = 2.0  # for a client to say what it wants
_ANSWER_S = 5.0  # for a client to take what it is told
_EXIT_S = 30.0  # for a capture to be written when the program ends


@dataclass(frozen=True, slots=True)
class Settings:
    """What a program opted in for; see `on_demand`."""

    folder: Path
    max_seconds: float
    activities: tuple[str, ...] | None
    host: str


class Listener:
    """One process's ear. Made by `on_demand`; any thread may call it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._steps = Steps()
        self._lock = threading.RLock()
        self._server: socket.socket | None = None
        self._address: Path | None = None
        self._capture: Capture | None = None
        self._connection: socket.socket | None = None
        self._worker: threading.Thread | None = None

    @property
    def address(self) -> Path | None:
        """The socket; None where nobody listens."""
        return self._address

    def step(self, who: Hashable = "step") -> None:
        """Say that a step of the program ended; torch's optimizers say so by themselves.

        Args:
            who: tells apart what counts steps on one thread; one of them counts.
        """
        self._steps.passed(who)

    def close(self) -> None:
        """Listen no more. A capture that is under way goes on."""
        with self._lock:
            server, self._server = self._server, None
            path, self._address = self._address, None
        if path is not None:
            with suppress(OSError):
                path.unlink()
        if server is not None:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)  # wakes the thread
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._address is None:
            return "<devprof.on_demand, closed>"
        return f"<devprof.on_demand at {self._address}, writes to {self.settings.folder}>"

    # -- the thread that listens --------------------------------------------------------------------------------------

    def open(self) -> None:
        """Make the socket, and listen on a thread; does nothing where that is done.

        Raises:
            UsageError: the folder of sockets is not private, its path is too long, or this is not Linux.
            OSError: the socket cannot be made.
        """
        with self._lock:
            if self._server is not None:
                return
            address = address_of(os.getpid()) if sys.platform == "linux" else None
            if address is None:
                raise UsageError(
                    "captures on demand need Linux: the kernel has to say who is at the other end of a socket"
                )
            make_private(address.path.parent)
            sweep()
            self._server, self._address = _bound(address.path), address.path
            threading.Thread(target=self._listen, args=(self._server,), name="devprof-on-demand", daemon=True).start()

    def _listen(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                if self._server is not server:  # closed
                    return
                log.exception("devprof listens no more")
                self.close()
                return
            try:
                self._serve(connection)
            except Exception:  # whatever a client does, the next one is heard
                log.debug("a request came to nothing", exc_info=True)
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        peer = peer_of(connection)
        if not peer.is_same_user:
            _tell(connection, "refused", kind="user", message=f"this process belongs to another user than {peer.uid}")
            connection.close()
            return
        try:
            message = receive(connection, _REQUEST_S)
            if message is None:
                connection.close()
                return
            request = CaptureRequest.from_dict(message.get("request"))
            self._start(request, connection)
        except (UsageError, TimeoutError) as error:
            _tell(connection, "refused", kind="request", message=str(error))
            connection.close()

    def _start(self, request: CaptureRequest, connection: socket.socket) -> None:
        limit_s = self.settings.max_seconds
        if request.seconds is not None and request.seconds > limit_s:
            raise UsageError(f"{request.seconds:g} s were asked for; this program allows {limit_s:g} s")
        with self._lock:
            if self._capture is not None:
                _tell(
                    connection,
                    "refused",
                    kind="busy",
                    message="already profiling: another `devprof attach` is under way",
                )
                connection.close()
                return
            settings = self.settings
            folder = Folder(settings.folder)
            capture = Capture(request, connection, folder, self._steps, limit_s, settings.activities, settings.host)
            self._capture, self._connection = capture, connection
            self._worker = threading.Thread(
                target=self._run, args=(capture, connection), name="devprof-capture", daemon=True
            )
        try:
            self._worker.start()
        except RuntimeError as error:
            with self._lock:
                self._capture = self._connection = self._worker = None
            capture.close()
            raise UsageError(f"no thread can be started: {error}") from error

    # -- the thread that records --------------------------------------------------------------------------------------

    def _run(self, capture: Capture, connection: socket.socket) -> None:
        state, more = _outcome(capture, lambda: self._recording(connection))
        with self._lock:
            self._capture = self._connection = None  # before the answer: who has it may ask again
        _tell(connection, state, **more)
        connection.close()

    def _recording(self, connection: socket.socket) -> None:
        # what was registered last is called first at exit: before that which ends a profile that nobody stops
        atexit.unregister(self.end_capture)
        atexit.register(self.end_capture)
        _tell(connection, "recording")

    def end_capture(self) -> None:
        """At the program's exit: let a capture be written, for torch crashes where it is left recording."""
        self.close()
        capture, worker = self._capture, self._worker
        if capture is not None:
            capture.leave("exit")
        if worker is not None:
            worker.join(_EXIT_S)

    def reopen_in_child(self) -> None:
        """After a fork: let go of the parent's socket and requests, and listen under this process's own id."""
        was_open, self._lock = self._server is not None, threading.RLock()
        for one in (self._server, self._connection, self._capture):
            if one is not None:
                with suppress(OSError):
                    one.close()
        self._server = self._address = self._capture = self._connection = self._worker = None
        self._steps.gate = None
        if was_open:
            try:
                self.open()
            except (DevprofError, OSError, RuntimeError):  # RuntimeError: no thread can be started
                log.warning("devprof does not listen in this forked process", exc_info=True)


def _outcome(capture: Capture, recording: Callable[[], object]) -> tuple[str, dict[str, Any]]:
    """Run a capture, and return what is to be told of it."""
    try:
        return "written", {"answer": capture.run(recording).as_dict()}
    except SessionError as error:
        return "refused", {"kind": "busy", "message": f"already profiling: {error}"}
    except DevprofError as error:
        return "failed" if capture.is_recording else "refused", {"kind": "error", "message": str(error)}
    except BaseException as error:  # the program must not notice
        if not threading.main_thread().is_alive():  # too late to import, or to start a thread
            return "refused", {"kind": "error", "message": "the program is ending"}
        log.warning("a capture on demand failed", exc_info=True)
        return "failed", {"kind": "error", "message": f"{type(error).__name__}: {error}"}


def _bound(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            path.unlink()  # of the program that this process ran before it became another one by exec
        server.bind(str(path))
        path.chmod(0o600)
        server.listen(_QUEUE)
    except BaseException:
        server.close()
        raise
    return server


def _tell(connection: socket.socket, state: str, **more: Any) -> None:
    with suppress(OSError):  # the other side is gone
        connection.settimeout(_ANSWER_S)
        send(connection, {"version": VERSION, "state": state, "pid": os.getpid(), **more})


# -- the opt-in -------------------------------------------------------------------------------------------------------

_listener: Listener | None = None
_opening = threading.Lock()


def on_demand(
    folder: str | os.PathLike[str] | None = None,
    *,
    max_seconds: float | None = None,
    activities: Iterable[str] | None = None,
    host: str = "auto",
) -> Listener:
    """Let this user's ``devprof attach`` have this process recorded, for a while, at any time.

    One listener per process: a later call changes its settings. It needs no daemon and opens no network port: a thread waits on
    a Unix socket that only this user can reach. A forked child listens under its own id.

    Args:
        folder: where traces go; by default ``devprof-traces`` in the present working directory. Nothing is written elsewhere.
        max_seconds: the longest that may be asked for, 60 by default; when it is over, the capture ends.
        activities: what to record, as for `devprof.profile`; by default all there is.
        host: as for `devprof.profile`: by default torch where the program has imported it by the time of the request.

    Returns:
        The listener: `step()` counts the program's steps, `close()` ends it. With ``DEVPROF_DISABLE=1`` it does not listen.

    Raises:
        UsageError: an argument is wrong, the folder of sockets is not private, or this is not Linux.
        OSError: the socket cannot be made.
    """
    global _listener
    limit_s = MAX_S if max_seconds is None else float(max_seconds)
    if not 0 < limit_s < float("inf"):
        raise UsageError(f"max_seconds is {max_seconds!r}; expected a number above 0: a capture must end")
    if host not in ("auto", "torch", "python"):
        raise UsageError(f"host is {host!r}; expected 'auto', 'torch' or 'python'")
    names = None if activities is None else tuple(activities)
    settings = Settings(Path(folder or DEFAULT_FOLDER).absolute(), limit_s, names, host)
    with _opening:
        if _listener is None:
            _listener = Listener(settings)
            atexit.register(_listener.end_capture)
            os.register_at_fork(after_in_child=_in_child)
        _listener.settings = settings
        if os.environ.get("DEVPROF_DISABLE") == "1":
            log.info("DEVPROF_DISABLE=1: nobody listens for `devprof attach`")
        else:
            _listener.open()
            _count_steps_of_torch()
        return _listener


def start_if_asked() -> None:
    """Listen where ``DEVPROF_ON_DEMAND`` asks for it. Never raises: the program did not call this itself."""
    asked = os.environ.get("DEVPROF_ON_DEMAND", "")
    if asked in ("", "0") or _listener is not None:
        return
    try:
        on_demand(None if asked == "1" else asked, max_seconds=_limit_in_environment())
    except UsageError as error:
        log.warning("devprof does not listen for `devprof attach`: %s", error)
    except Exception:  # whatever it is, the program matters more
        log.warning("devprof does not listen for `devprof attach`", exc_info=True)


def _limit_in_environment() -> float | None:
    text = os.environ.get("DEVPROF_ON_DEMAND_MAX_S", "")
    try:
        return float(text) if text else None
    except ValueError:
        raise UsageError(f"DEVPROF_ON_DEMAND_MAX_S is {text!r}; expected seconds") from None


def _count_steps_of_torch() -> None:
    """Have optimizers count; from the program's own thread, for they look their hooks up while others train."""
    if _listener is not None and hasattr(sys.modules.get("torch"), "optim"):
        from devprof.torch.on_demand import count_optimizer_steps

        count_optimizer_steps(_listener.step)


def _in_child() -> None:
    global _opening
    _opening = threading.Lock()
    if _listener is not None:
        _listener.reopen_in_child()
