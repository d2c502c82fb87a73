"""Build a `NativeBuild` into the cache: one compiler call, under a lock, moved into place when it is whole."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devprof.contract import NativeBuild
from devprof.errors import BuildError
from devprof.native.cache import build_info, check_private, checksum_of, checksum_path, find, library_path
from devprof.native.facts import FLAGS, compiler, include_dir, missing, python_include, torch_facts

__all__ = ["build"]

_LINES_SHOWN = 25


def build(spec: NativeBuild, *, force: bool = False) -> Path:
    """Return the library of `spec`, building it first where it is not in the cache.

    Processes that build at the same time wait for each other; a half-written file is never visible. Where a fitting library
    is cached, nothing is needed and nothing is written.

    Args:
        spec: what to build.
        force: build even where a fitting library is cached.

    Raises:
        BuildError: something is missing, the cache cannot be used, or the compiler failed; the message carries its last lines.
    """
    if not force and (found := find(spec)) is not None:
        return found
    if (reason := missing(spec)) is not None:
        raise BuildError(f"cannot build {spec.name!r}: {reason}")
    target = library_path(spec)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(target.parent)
        with _lock(target):
            if force or find(spec) is None:
                _compile(spec, target)
    except OSError as error:
        raise BuildError(
            f"cannot build {spec.name!r} into {target.parent}: {error}; set DEVPROF_CACHE to a directory of your own"
        ) from error
    return target


@contextmanager
def _lock(target: Path) -> Iterator[None]:
    with target.with_suffix(".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _compile(spec: NativeBuild, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / target.name
        command = _command(spec, made)
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            tail = "\n".join(said[-_LINES_SHOWN:])
            raise BuildError(
                f"building {spec.name!r} failed with exit code {done.returncode}: {command[0]} said\n{tail}"
            )
        made.chmod(0o700)
        checksum = Path(scratch) / checksum_path(target).name
        checksum.write_text(f"{checksum_of(made)}\n", encoding="ascii")
        checksum.chmod(0o644)
        checksum.replace(checksum_path(target))
        made.replace(target)


def _command(spec: NativeBuild, made: Path) -> list[str]:
    include_dirs = [*spec.include_dirs, include_dir()]
    flags, link = [*FLAGS], list[str]()
    torch = torch_facts() if spec.needs_torch else None
    if torch is not None:
        include_dirs += torch.include_dirs
        # fmt is header-only in torch's wheel; without the macro the library fails to load on an fmt symbol
        flags += ["-DUSE_KINETO", "-DFMT_HEADER_ONLY=1"]
        lib = torch.root / "lib"
        link += [f"-L{lib}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}"]
    if spec.needs_python and (include := python_include()) is not None:
        include_dirs.append(include)
    info = f'-DDEVPROF_BUILD_INFO="{build_info(spec)}"'
    # torch's headers are not ours to mend: as system headers they raise no warnings
    includes = [part for path in include_dirs for part in ("-isystem", str(path))]
    sources = [str(path) for path in spec.sources]
    return [*(compiler() or ()), *flags, info, *includes, *spec.flags, *sources, "-o", str(made), *link]
