"""Which file is libcupti: one per process, and whose.

A second copy in a process is a second CUPTI, and two of them are undefined. So a copy that is loaded already is taken, whatever
else there is.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuda_cupti.errors import CudaUnavailableError

__all__ = ["PATH_VARIABLE", "Found", "find_libcupti", "loaded_copies", "packages"]

PATH_VARIABLE = "DEVPROF_LIBCUPTI"
_SONAMES = ("libcupti.so.13", "libcupti.so.12")
_NAME = re.compile(r"libcupti\.so(\.[0-9.]+)?$")
_MAPS = Path("/proc/self/maps")


@dataclass(frozen=True, slots=True)
class Found:
    """A libcupti.

    Attributes:
        path: its file, or a bare soname that the loader finds.
        how: how it was found, in words.
    """

    path: str
    how: str

    @property
    def major(self) -> int:
        """The CUDA major release that the file's name tells, 0 where it tells none."""
        for path in (self.path, os.path.realpath(self.path)):
            if match := re.search(r"libcupti\.so\.(\d\d)(\.|$)", path):
                return int(match.group(1))
        return 0


def find_libcupti() -> Found:
    """Find the libcupti to use. Only where the driver is there: looking may load the file, though it calls nothing in it.

    In this order: what ``DEVPROF_LIBCUPTI`` names, a copy that is loaded, what cuda-pathfinder finds, the folders of NVIDIA's
    wheels on `sys.path`, a CUDA toolkit, the loader's own path.

    Raises:
        CudaUnavailableError: there is none, or not the one that was named, or another one is loaded.
    """
    loaded = loaded_copies()
    if named := os.environ.get(PATH_VARIABLE, ""):
        return _named(named, loaded)
    if len(loaded) > 1:
        raise CudaUnavailableError(_several(loaded))
    if loaded:
        return Found(loaded[0], "loaded already")
    found = next(_candidates(), None)
    if found is None:
        raise CudaUnavailableError(
            "CUDA tracing is off: there is a driver, and no libcupti. Install it (`pip install nvidia-cuda-cupti`, or "
            f"`nvidia-cuda-cupti-cu12` for CUDA 12), or name the file in {PATH_VARIABLE}."
        )
    return found


def loaded_copies() -> list[str]:
    """Return the files of every libcupti that is loaded in this process, each once."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    paths = {fields[5].removesuffix(" (deleted)") for line in lines if len(fields := line.split(maxsplit=5)) == 6}
    return sorted({os.path.realpath(path) for path in paths if _NAME.search(path)})


def packages() -> dict[str, str]:
    """Return the versions of NVIDIA's packages that bear on this, by name, of those that are installed."""
    names = ("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12", "cupti-python", "cuda-bindings", "cuda-pathfinder")
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _named(path: str, loaded: list[str]) -> Found:
    if not Path(path).is_file():
        raise CudaUnavailableError(
            f"{PATH_VARIABLE} is {path!r}, and there is no such file; expected the path of libcupti.so"
        )
    others = [other for other in loaded if other != os.path.realpath(path)]
    if others:
        raise CudaUnavailableError(
            f"{PATH_VARIABLE} names {path}, and {others[0]} is loaded already; two of them in one process are undefined. Leave "
            f"{PATH_VARIABLE} out, or load that file before anything else loads CUPTI."
        )
    return Found(path, PATH_VARIABLE)


def _several(loaded: list[str]) -> str:
    return (
        f"CUDA tracing is off: {len(loaded)} copies of libcupti are loaded in this process ({', '.join(loaded)}), and their "
        "records mix. Let all that loads CUPTI load one file."
    )


def _candidates() -> Iterator[Found]:
    yield from _of_pathfinder()
    for folder in (Path(entry) for entry in sys.path if entry):
        for inside in ("nvidia/cu13/lib", "nvidia/cuda_cupti/lib"):
            yield from _in_folder(folder / inside, f"NVIDIA's wheel in {folder}")
    toolkits = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    for toolkit in filter(None, toolkits):
        yield from _in_folder(Path(toolkit) / "extras/CUPTI/lib64", f"the CUDA toolkit in {toolkit}")
    yield from (Found(name, "the loader's path") for name in _SONAMES if _loader_has(name))


def _of_pathfinder() -> Iterator[Found]:
    try:
        finder = importlib.import_module("cuda.pathfinder")
        path = finder.load_nvidia_dynamic_lib("cupti").abs_path
    except Exception:  # noqa: BLE001  # not installed, finds nothing, or fails as its release does: there are other ways
        return
    if path:
        yield Found(str(path), "cuda-pathfinder")


def _in_folder(folder: Path, how: str) -> Iterator[Found]:
    for soname in _SONAMES:
        if (folder / soname).is_file():
            yield Found(str(folder / soname), how)


def _loader_has(soname: str) -> bool:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True
