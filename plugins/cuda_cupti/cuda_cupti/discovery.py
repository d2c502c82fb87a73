"""Which file is libcupti: one per process, and whose.

A second copy in a process is a second CUPTI, and two of them are undefined. So a copy that is loaded already is taken, whatever
else there is.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import logging
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuda_cupti.elf import soname
from cuda_cupti.errors import CudaUnavailableError, NoLibraryError

__all__ = ["LOADED", "PATH_VARIABLE", "Found", "find_libcupti", "loaded_copies", "packages"]

log = logging.getLogger("devprof.cuda_cupti")

PATH_VARIABLE = "DEVPROF_LIBCUPTI"
LOADED = "loaded already"
"""How a copy was found that something else loaded."""
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
        """The CUDA major release that the library says it is of, else the file's name; 0 where neither tells."""
        said = soname(self.path) if os.sep in self.path else ""  # a bare name is no file of the current folder
        for name in (said, self.path, os.path.realpath(self.path)):
            if match := re.search(r"libcupti\.so\.(\d\d)(\.|$)", name):
                return int(match.group(1))
        return 0

    def fits(self, driver_major: int) -> bool:
        """Say whether a driver of a CUDA major release can work with it, as far as that is known; 0: any driver."""
        return not driver_major or self.major <= driver_major


def find_libcupti(driver_major: int = 0) -> Found:
    """Find the libcupti to use. Only where the driver is there: looking may load the file, though it calls nothing in it.

    In this order: what ``DEVPROF_LIBCUPTI`` names, a copy that is loaded, the folders of NVIDIA's wheels on `sys.path`, what
    cuda-pathfinder finds, a CUDA toolkit, the loader's own path. Of those that are not loaded yet, the first that the driver
    can work with.

    Args:
        driver_major: the CUDA major release of the driver; 0: not known, so that every file fits.

    Returns:
        The file; one that is too new for the driver only where it is named, loaded, or nothing else is there.

    Raises:
        CudaUnavailableError: it is not the one that was named, or another one is loaded.
        NoLibraryError: there is none.
    """
    loaded = loaded_copies()
    if named := os.environ.get(PATH_VARIABLE, ""):
        return _named(named, loaded)
    if len(loaded) > 1:
        raise CudaUnavailableError(_several(loaded))
    if loaded:
        return Found(loaded[0], LOADED)
    too_new: Found | None = None
    for found in _candidates(driver_major):
        # cuda-pathfinder loads what it finds, and then there cannot be another one
        if found.fits(driver_major) or loaded_copies():
            return found
        too_new = too_new or found
    if too_new is None:
        wheel = "nvidia-cuda-cupti-cu12" if driver_major == 12 else "nvidia-cuda-cupti"
        raise NoLibraryError(
            f"CUDA tracing is off: there is a driver, and no libcupti. Install it (`pip install {wheel}`), or name the file in "
            f"{PATH_VARIABLE}."
        )
    return too_new


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


def _named(name: str, loaded: list[str]) -> Found:
    path = str(Path(name).absolute())  # the loader would look for a bare name in folders of its own
    if not _is_file(Path(path)):
        what = "that is a directory" if Path(path).is_dir() else "there is no such file"
        raise CudaUnavailableError(f"{PATH_VARIABLE} is {name!r}, and {what}; expected the path of libcupti.so")
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


def _candidates(driver_major: int) -> Iterator[Found]:
    for folder in (Path(entry) for entry in sys.path if isinstance(entry, str) and entry):
        for inside in ("nvidia/cu13/lib", "nvidia/cuda_cupti/lib"):
            yield from _in_folder(folder / inside, f"NVIDIA's wheel in {folder}")
    yield from _of_pathfinder()
    toolkits = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    for toolkit in filter(None, toolkits):
        yield from _in_folder(Path(toolkit) / "extras/CUPTI/lib64", f"the CUDA toolkit in {toolkit}")
    for found in (Found(name, "the loader's path") for name in _SONAMES):
        if found.fits(driver_major) and _loader_has(found.path):  # to ask the loader is to load
            yield found


def _of_pathfinder() -> Iterator[Found]:
    try:
        finder = importlib.import_module("cuda.pathfinder")
        path = finder.load_nvidia_dynamic_lib("cupti").abs_path
    except ImportError:
        return
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # it finds nothing, or fails as its release does: there are other ways
        level = logging.INFO if isinstance(error, Exception) else logging.WARNING
        log.log(level, "cuda-pathfinder gave no libcupti: %s: %s", type(error).__name__, error)
        return
    if path:
        yield Found(str(path), "cuda-pathfinder")


def _in_folder(folder: Path, how: str) -> Iterator[Found]:
    yield from (Found(str(folder / name), how) for name in _SONAMES if _is_file(folder / name))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that this user may not look into
        return False


def _loader_has(soname: str) -> bool:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True
