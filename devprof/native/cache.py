"""Where built libraries are kept: a private directory, one file per (torch, ABI, sources)."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from devprof.contract import NativeBuild
from devprof.errors import BuildError
from devprof.native.facts import FLAGS, torch_facts

__all__ = [
    "build_info",
    "cache_dir",
    "check_private",
    "check_unchanged",
    "checksum_of",
    "checksum_path",
    "find",
    "library_path",
]

_NAME = re.compile(r"[\w.-]+", re.ASCII)
_OWN_CACHE = "set DEVPROF_CACHE to a directory of your own"


def cache_dir() -> Path:
    """Return the cache's directory: ``$DEVPROF_CACHE``, else devprof's directory in the XDG cache.

    Raises:
        BuildError: this user has no home directory.
    """
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG standard has a relative path there ignored: it would mean another cache in every directory
    default = f"{xdg}/devprof" if xdg.startswith("/") else "~/.cache/devprof"
    chosen = os.environ.get("DEVPROF_CACHE") or default
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError as error:
        raise BuildError(f"the cache cannot be at {chosen}: {error}; {_OWN_CACHE}") from error


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
    """Return where the library of `spec` is, or would be, for this torch and these sources.

    Raises:
        BuildError: the name cannot be a file's name, or a source cannot be read.
    """
    if not _NAME.fullmatch(spec.name):
        raise BuildError(f"the build's name is {spec.name!r}; expected letters, digits, '_', '.' and '-' only")
    digest = hashlib.sha256()
    for part in _key(spec):
        # with its length, so that two parts never read as one
        digest.update(b"%d:%b" % (len(part), part))
    return cache_dir() / f"{spec.name}-{digest.hexdigest()[:16]}.so"


def _key(spec: NativeBuild) -> Iterator[bytes]:
    yield from (text.encode() for text in (build_info(spec), sysconfig.get_platform(), *FLAGS, *spec.flags))
    for role, paths in (("sources", spec.sources), ("headers", spec.headers)):
        yield role.encode()
        for path in paths:
            yield os.fsencode(path.name)
            yield _content(spec, path)


def _content(spec: NativeBuild, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BuildError(
            f"a source of {spec.name!r} cannot be read: {error}; its package is incomplete, install it again"
        ) from error


def find(spec: NativeBuild) -> Path | None:
    """Return the built library of `spec`, or None where it has not been built.

    Raises:
        BuildError: the cache belongs to somebody else or others may write to it, so nothing is loaded from it.
    """
    path = library_path(spec)
    for private in (path.parent, path, checksum_path(path)):
        try:
            check_private(private)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BuildError(f"the cache cannot be read: {error}; {_OWN_CACHE}") from error
    return path


def checksum_path(library: Path) -> Path:
    """Return where the checksum of a built library is kept."""
    return library.with_suffix(".sha256")


def checksum_of(library: Path) -> str:
    """Return the checksum of a library's content."""
    with library.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_unchanged(library: Path) -> None:
    """Refuse a library that is not what the builder put there: half a file, a damaged one, another one.

    Raises:
        BuildError: its content is another one than when it was built.
        OSError: it, or its checksum, cannot be read.
    """
    if checksum_of(library) != checksum_path(library).read_text(encoding="ascii", errors="replace").strip():
        raise BuildError(
            f"{library} is not what was built: its content has changed since. Remove it, and build it again"
        )


def check_private(path: Path) -> None:
    """Refuse a file or directory that another user, other than root, could have changed.

    Raises:
        BuildError: another user owns it or may write to it.
        OSError: it is not there, or this user may not look.
    """
    facts = path.stat()
    if facts.st_uid not in (os.geteuid(), 0) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BuildError(
            f"{path} is owned by user {facts.st_uid} with mode {stat.filemode(facts.st_mode)}; expected user "
            f"{os.geteuid()} or root and no write access for others. Remove it, or {_OWN_CACHE}"
        )
