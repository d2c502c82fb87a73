"""A headless Chromium, spoken to over a pair of pipes in the words of its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-proxy-server",
    # a page that asks for any other machine gets an error at once, on every network
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
# Chromium reads from descriptor 3 and writes to descriptor 4
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """Return a Chromium on PATH."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """The browser's one page."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._read = b""
        self._number = 0
        self.messages: list[str] = []
        """What the page wrote to its console, and errors in it."""
        self.answered: list[str] = []
        """Addresses from which the page got something."""
        page = next(one for one in self._call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    _session: str | None = None

    def open(self, url: str, *, width: int = 1280, height: int = 800, dark: bool = False, print_: bool = False) -> None:
        """Go to an address; what earlier pages said is forgotten."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media="print" if print_ else "", features=[scheme])
        self._call("Page.navigate", url="about:blank")
        self.wait_for("location.href == 'about:blank'")
        self.messages.clear()
        self.answered.clear()
        self._call("Page.navigate", url=url)
        self.wait_for("document.readyState == 'complete' && location.href != 'about:blank'")

    def value(self, expression: str) -> Any:
        """Return what an expression, or the promise that it gives, comes to.

        Raises:
            RuntimeError: it throws.
        """
        found = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']['exception'].get('description')}")
        return found["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = 90) -> Any:
        """Return what an expression comes to as soon as it is true."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            with suppress(RuntimeError):  # what it is about may not be there yet
                if found := self.value(expression):
                    return found
            time.sleep(0.1)
        raise TimeoutError(f"{expression} did not come true in {timeout_s} s; the page said {self.messages[-10:]}")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of the page, PNG."""
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Ask the browser to end."""
        self._session = None
        self._call("Browser.close")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        call = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._commands, json.dumps(call).encode() + b"\0")
        while (message := self._next()).get("id") != self._number:
            self._note(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return dict(message["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            if not select.select([self._answers], [], [], 60)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._answers, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self._read += part
        text, _, self._read = self._read.partition(b"\0")
        return dict(json.loads(text))

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Network.responseReceived":
                self.answered.append(parameters["response"]["url"])
            case "Runtime.consoleAPICalled":
                self.messages.append(" ".join(str(one.get("value", "")) for one in parameters["args"]))
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.messages.append(str(details.get("exception", {}).get("description", details["text"])))
            case "Log.entryAdded":
                self.messages.append(parameters["entry"]["text"])


@contextmanager
def chromium(program: str, folder: Path) -> Iterator[Page]:
    """Run a browser that keeps its files in `folder`, and give its page."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    flags = [*FLAGS, f"--user-data-dir={folder}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), program, *flags, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(folder), "HOME": str(folder)},
        )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        page = Page(ours_out, ours_in)
        yield page
        page.close()
        process.wait(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours_out)
        os.close(ours_in)
