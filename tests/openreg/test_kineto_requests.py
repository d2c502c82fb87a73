"""Kineto is asked from outside, by a stand-in for the daemon that torch asks: real requests, by steps and by time.

Source: dynolog's ipcfabric (a datagram is a size, a type of 32 bytes, and what belongs to it) and its kinds "ctxt" and "req".
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="these tests run on torch")
pytest.importorskip("openreg_sim")

LONGEST_S = 90.0

PROGRAM = """
import pathlib, sys, time
import torch
import devprof.torch.demanded as demanded
import devprof.torch.kineto_requests as requests
folder = pathlib.Path(sys.argv[1])
drain = demanded.drain
def drain_when_it_may(*arguments):
    if (folder / "slow").exists():
        time.sleep(2.5)  # Kineto asks within a second, and waits 200 ms
    drain(*arguments)
demanded.drain = drain_when_it_may
model = torch.nn.Linear(8, 8).to("openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while not (folder / "over").exists():
    optimizer.zero_grad()
    model(torch.ones(4, 8, device="openreg")).sum().backward()
    optimizer.step()
    time.sleep(0.01)
    if requests._server is not None:
        (folder / "ready").touch()  # Kineto drops a request by steps of a program that makes none
print(requests._server.bridge.lib.devprof_demand_without_data(), torch.ones(2, device="openreg").sum().item())
with torch.profiler.profile() as prof:
    torch.ones(2, device="openreg")
import devprof
print(devprof.report_of(prof).ledgers["openreg"].device_work)
"""


class Daemon:
    """Answers every request of Kineto's; the next one gets the configuration that is set."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "dynolog"))
        self._socket.settimeout(0.2)
        self.config = ""

    def serve_until(self, found: Any) -> Any:
        """Answer until `found` returns something."""
        end_s = time.monotonic() + LONGEST_S
        while (answer := found()) is None:
            assert time.monotonic() < end_s, "Kineto wrote no trace"
            try:
                data, sender = self._socket.recvfrom(1 << 16)
            except TimeoutError:
                continue
            kind = data[8:40].rstrip(b"\0")
            reply = struct.pack("i", 1) if kind == b"ctxt" else self.config.encode()
            self.config = self.config if kind == b"ctxt" else ""
            self._socket.sendto(struct.pack("Q32s", len(reply), kind) + reply, sender)
        return answer

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dv") as path:  # pytest's own are too long for a socket
        yield Path(path)


def _written(path: Path) -> dict[str, Any] | None:
    try:
        trace: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return trace


def _kinds(trace: dict[str, Any]) -> Counter[str]:
    return Counter(event.get("cat", "") for event in trace["traceEvents"])


def test_requests_by_steps_and_by_time_have_device_work_and_kineto_waits_no_longer_than_it_says(folder: Path) -> None:
    from devprof.native import build
    from devprof.torch.bridge_build import BRIDGE

    build(BRIDGE)
    daemon = Daemon(folder)
    environment = {
        "KINETO_USE_DAEMON": "1",
        "KINETO_IPC_SOCKET_DIR": str(folder),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
        "KINETO_LOG_LEVEL": "99",
    }
    program = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM, str(folder)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        daemon.serve_until(lambda: (folder / "ready").exists() or None)
        daemon.config = (
            f"ACTIVITIES_LOG_FILE={folder / 'steps.json'}\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=10\n"
            "ACTIVITIES_WARMUP_ITERATIONS=1\nACTIVITIES_ITERATIONS=5\n"
        )
        by_steps = daemon.serve_until(lambda: _written(folder / f"steps_{program.pid}.json"))
        (folder / "slow").touch()
        daemon.config = (
            f"ACTIVITIES_LOG_FILE={folder / 'time.json'}\nACTIVITIES_DURATION_MSECS=200\n"
            "ACTIVITIES_WARMUP_PERIOD_SECS=0\nPROFILE_START_TIME=0\n"
        )
        by_time = daemon.serve_until(lambda: _written(folder / f"time_{program.pid}.json"))
        (folder / "over").touch()
        out, err = program.communicate(timeout=LONGEST_S)
    finally:
        program.kill()
        program.wait()
        daemon.close()
    assert program.returncode == 0, err
    kinds = _kinds(by_steps)
    assert kinds["kernel"] == kinds["privateuse1_runtime"] == 35  # 7 in each of 5 steps
    ledger = by_steps["devprof"]["plugins"]["openreg"]
    assert (ledger["linked"], ledger["emitted"]) == (35, 70)
    assert ledger["produced"] == ledger["emitted"] + sum(ledger["dropped"].values())
    assert _kinds(by_time)["kernel"] == 0
    assert _kinds(by_time)["cpu_op"] > 0
    assert by_time["devprof"] == {"no data": "the plugins' records did not come within 200 ms"}
    assert out.splitlines() == ["1 2.0", "1"]  # one without data; the device and a profile of the program's own go on
