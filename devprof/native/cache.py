"""Where built libraries are kept: a private directory, one file per (torch, ABI, sources)."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import sysconfig
from pathlib import Path

from devprof.contract import NativeBuild
from devprof.errors import BuildError
from devprof.native.facts import torch_facts

__all__ = ["build_info", "cache_dir", "find", "library_path"]


def cache_dir() -> Path:
    """Return the cache's directory: ``$DEVPROF_CACHE``, else devprof's directory in the XDG cache."""
    chosen = os.environ.get("DEVPROF_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "devprof"


def build_info(spec: NativeBuild) -> str:
    """Return the text that a fitting library of `spec` carries."""
    parts = [spec.name]
    torch = torch_facts() if spec.needs_torch else None
    if torch is not None:
        parts.append(torch.build_info)
    if spec.needs_python:
        parts.append(str(sysconfig.get_config_var("SOABI") or sys.version))
    return " | ".join(parts)


def library_path(spec: NativeBuild) -> Path:
    """Return where the library of `spec` is, or would be, for this torch and these sources."""
    digest = hashlib.sha256()
    digest.update("\0".join((build_info(spec), sysconfig.get_platform(), *spec.flags)).encode())
    for path in (*spec.sources, *spec.headers):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return cache_dir() / f"{spec.name}-{digest.hexdigest()[:16]}.so"


def find(spec: NativeBuild) -> Path | None:
    """Return the built library of `spec`, or None where it has not been built.

    Raises:
        BuildError: the cache belongs to somebody else or others may write to it, so nothing is loaded from it.
    """
    path = library_path(spec)
    if not path.exists():
        return None
    check_private(path.parent)
    check_private(path)
    return path


def check_private(path: Path) -> None:
    """Refuse a file or directory that another user could have changed."""
    facts = path.stat()
    if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BuildError(
            f"{path} is owned by user {facts.st_uid} with mode {stat.filemode(facts.st_mode)}; expected user "
            f"{os.getuid()} and no write access for others. Remove it, or set DEVPROF_CACHE to a directory of your own"
        )
