"""One process, both sides: what is recorded, what is refused, and who may ask."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import devprof
from devprof.capture.guest import GUEST
from devprof.errors import SessionError, UsageError
from devprof.trigger import Answer, CaptureRequest, attach, listening
from devprof.trigger.client import Attached
from devprof.trigger.listener import Listener
from devprof.trigger.places import address_of
from tests.unit.trigger.conftest import Made

PID = os.getpid()


@contextmanager
def _working(step: Callable[[], object] = lambda: None) -> Iterator[Callable[[], None]]:
    """Ranges on another thread, and a step after each; gives what waits until one is done that began since."""
    over = threading.Event()
    asked, done = threading.Semaphore(0), threading.Semaphore(0)

    def work() -> None:
        while not over.is_set():
            is_asked = asked.acquire(timeout=0.001)
            with devprof.record_function("work"):
                pass
            if is_asked:
                done.release()
            step()

    def some_work() -> None:
        asked.release()
        assert done.acquire(timeout=60)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield some_work
    finally:
        over.set()
        thread.join()


def _names(answer: Answer) -> set[str]:
    trace = devprof.load(answer.path)
    return {trace.strings[i] for i in trace.name.tolist()}


def test_other_threads_are_recorded_for_as_long_as_was_asked(listen: Made, tmp_path: Path) -> None:
    listen()
    with _working():
        answer = attach(PID, CaptureRequest(seconds=0.2))
    assert _names(answer) == {"work"}
    assert (answer.host, answer.ended_by, answer.steps) == ("python", "time", None)
    assert answer.seconds >= 0.2
    path = Path(answer.path)
    assert path.parent == tmp_path / "traces"
    assert path.stat().st_size == answer.size_bytes
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_whole_steps_are_recorded_and_counted(listen: Made) -> None:
    listener = listen()
    with _working(listener.step):
        answer = attach(PID, CaptureRequest(steps=5))
    assert (answer.steps, answer.ended_by) == (5, "steps")
    trace = devprof.load(answer.path)
    assert len(trace) == 5


def test_a_request_of_steps_ends_with_the_time_where_no_step_comes(listen: Made) -> None:
    listen()
    with pytest.raises(UsageError, match=r"no step of the program ended within 0\.1 s"):
        attach(PID, CaptureRequest(steps=5, seconds=0.1))
    assert GUEST.make_way() is False  # the slot is free


def test_the_other_side_can_end_it_early_and_gets_what_was_recorded(listen: Made) -> None:
    listen()
    with _working() as some_work, Attached(PID, CaptureRequest(seconds=20)) as asked:
        answer = asked.answer(lambda: (some_work(), asked.end()))
    assert (answer.ended_by, _names(answer)) == ("asked", {"work"})


def test_a_capture_whose_asker_is_gone_ends_and_frees_the_slot(listen: Made) -> None:
    listen()
    with Attached(PID, CaptureRequest(seconds=20)) as asked, pytest.raises(InterruptedError):
        asked.answer(_raising)
    _until_free()
    assert attach(PID, CaptureRequest(seconds=0.01)).ended_by == "time"


def _raising() -> None:
    raise InterruptedError


def _until_free() -> None:
    while True:
        try:
            attach(PID, CaptureRequest(seconds=0.01))
        except SessionError:
            continue
        return


def test_a_second_request_is_told_that_one_is_under_way(listen: Made) -> None:
    listen()
    told: list[str] = []

    def second() -> None:
        with pytest.raises(SessionError) as caught:
            attach(PID, CaptureRequest(seconds=0.1))
        told.append(str(caught.value))

    with Attached(PID, CaptureRequest(seconds=20)) as asked:
        asked.answer(lambda: (second(), asked.end()))
    assert told == [f"process {PID}: already profiling: another `devprof attach` is under way"]


def test_a_request_beside_the_programs_own_profile_is_refused_and_the_profile_is_whole(listen: Made) -> None:
    listen()
    with devprof.profile(activities=["cpu"], host="python") as prof:
        with devprof.record_function("mine"):
            pass
        with pytest.raises(SessionError, match=r"already profiling: a devprof\.profile cannot start"):
            attach(PID, CaptureRequest(seconds=0.1))
    assert [event.name for event in prof.events()] == ["mine"]


def test_a_profile_of_the_programs_own_goes_first_and_the_capture_is_written(listen: Made) -> None:
    listen()
    profiles: list[Any] = []

    def own(some_work: Callable[[], None]) -> None:
        some_work()
        with devprof.profile(activities=["cpu"], host="python") as prof, devprof.record_function("mine"):
            pass
        profiles.append(prof)

    with _working() as some_work:
        answer = attach(PID, CaptureRequest(seconds=20), lambda: own(some_work))
    assert (answer.ended_by, _names(answer)) == ("program", {"work"})
    assert "mine" in {event.name for event in profiles[0].events()}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"seconds": 21.0}, r"21 s were asked for; this program allows 20 s"),
        ({"seconds": 1.0, "activities": ["nobody"]}, "nobody"),
    ],
)
def test_what_the_program_does_not_allow_is_refused_in_words(
    listen: Made, request_: dict[str, Any], words: str
) -> None:
    listen()
    with pytest.raises(UsageError, match=words):
        attach(PID, CaptureRequest.from_dict(request_))


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"nonsense\n",
        b"[]\n",
        b"[" * 60000 + b"\n",
        b'{"version": 99}\n',
        b'{"version": 1}\n',
        b'{"version": 1, "request": 5}\n',
        b'{"version": 1, "request": {"seconds": -1}}\n',
        b'{"version": 1, "request": {"seconds": true}}\n',
        b'{"version": 1, "request": {"seconds": NaN}}\n',
        b'{"version": 1, "request": {"seconds": 1e999}}\n',
        b'{"version": 1, "request": {"seconds": 1' + b"0" * 400 + b"}}\n",
        b'{"version": 1, "request": {"steps": 1.5}}\n',
        b'{"version": 1, "request": {"seconds": 1, "format": "/../../x.devprof"}}\n',
        b'{"version": 1, "request": {"seconds": 1, "with_stack": "yes"}}\n',
        b'{"version": 1, "request": {"seconds": 1, "activities": "cpu"}}\n',
        b'{"version": 1, "request": {"seconds": 1, "activities": [{}]}}\n',
        b"x" * 70000,
        b"\xff\xfe\n",
    ],
)
def test_a_message_that_is_none_is_refused_and_the_next_request_is_heard(
    listen: Made, line: bytes, tmp_path: Path
) -> None:
    listen()
    address = address_of(PID)
    assert address is not None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(address.path))
        with suppress(BrokenPipeError):  # it was too long
            client.sendall(line)
            client.shutdown(socket.SHUT_WR)
        told = client.recv(65536)
    assert json.loads(told)["state"] == "refused"
    assert not (tmp_path / "traces").exists()
    assert attach(PID, CaptureRequest(seconds=0.01)).ended_by == "time"


def test_another_user_is_refused(listen: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    listen()
    monkeypatch.setattr("devprof.trigger.listener.peer_of", lambda _: _Stranger())
    with pytest.raises(UsageError, match="this process belongs to another user than 4242"):
        attach(PID, CaptureRequest(seconds=0.1))


class _Stranger:
    pid, uid, is_same_user = 1, 4242, False


def test_a_socket_of_another_process_is_not_spoken_to(listen: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    listen()
    monkeypatch.setattr("devprof.trigger.client.peer_of", lambda _: _Stranger())
    with pytest.raises(UsageError, match=rf"belongs to process 1 of user 4242, not to process {PID}"):
        attach(PID, CaptureRequest(seconds=0.1))


def test_a_folder_that_cannot_be_written_to_is_told_and_the_slot_is_free(listen: Made, tmp_path: Path) -> None:
    listen()
    (tmp_path / "traces").write_text("a file")
    with pytest.raises(UsageError, match="the folder for captures cannot be written to"):
        attach(PID, CaptureRequest(seconds=0.01))
    (tmp_path / "traces").unlink()
    assert attach(PID, CaptureRequest(seconds=0.01)).ended_by == "time"


def test_a_thousand_who_only_knock_and_sixty_who_never_finish_keep_nobody_out(
    listen: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devprof.trigger.listener._REQUEST_S", 0.01)
    address = listen().address
    assert address is not None
    for _ in range(1000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(address))
    with ExitStack() as held:
        for _ in range(60):
            client = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            client.connect(str(address))
            client.sendall(b'{"version"')
        assert [one.pid for one in listening()] == [PID]
        assert attach(PID, CaptureRequest(seconds=0.01)).ended_by == "time"
    devprof_s = [one.name for one in threading.enumerate() if one.name.startswith("devprof-")]
    assert devprof_s.count("devprof-on-demand") == 1


def test_who_listens_is_listed_until_it_closes(listen: Made) -> None:
    listener = listen()
    assert [one.pid for one in listening()] == [PID]
    listener.close()
    assert listening() == []
    with pytest.raises(
        UsageError, match=rf"process {PID} is not listening: a program opts in with DEVPROF_ON_DEMAND=1"
    ):
        attach(PID, CaptureRequest(seconds=1))


def test_a_socket_whose_listener_is_gone_is_told_apart(listen: Made) -> None:
    listener = listen()
    path = listener.address
    assert path is not None
    listener.close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
        gone.bind(str(path))
    with pytest.raises(UsageError, match="is not listening any more"):
        attach(PID, CaptureRequest(seconds=1))
    assert attach_again(listener).ended_by == "time"


def attach_again(listener: Listener) -> Answer:
    listener.open()  # as after exec: the old socket is this very process's
    return attach(PID, CaptureRequest(seconds=0.01))


def test_a_process_that_is_not_there_is_said_to_be_none() -> None:
    for pid in (0, -1, 2**22 + 1):
        with pytest.raises(UsageError, match=rf"no such process: {pid}"):
            attach(pid, CaptureRequest(seconds=1))


def test_a_forked_child_listens_under_its_own_id_and_the_parent_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import subprocess
    import sys

    script = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import devprof
from devprof.trigger import CaptureRequest, attach
listener = devprof.on_demand(sys.argv[1], activities=["cpu"], host="python")
mine = listener.address
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    assert listener.address != mine and listener.address.exists()
    os.write(ready[1], b"x"); os.read(go[0], 1); os._exit(0)
os.read(ready[0], 1)
for pid in (child, os.getpid()):
    print(attach(pid, CaptureRequest(seconds=0.05)).path.rpartition("/")[2].startswith(f"{pid}-"))
os.write(go[1], b"x"); os.waitpid(child, 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True\nTrue\n", "", 0)
    assert len(list(tmp_path.glob("*.devprof"))) == 2
