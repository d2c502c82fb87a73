"""Opening CUPTI, in the order that does not crash: the driver, the file, its release, and only then its first call."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from functools import cache

from cuda_cupti.binding import Cupti, functions_of
from cuda_cupti.devices import DeviceFacts
from cuda_cupti.discovery import LOADED, PATH_VARIABLE, Found, find_libcupti, loaded_copies, packages
from cuda_cupti.driver import Driver, load_driver
from cuda_cupti.errors import CudaUnavailableError
from cuda_cupti.layouts import FIELDS, Layout, expected, release_of

__all__ = ["Access", "calibrated", "facts_of", "open_cupti", "release_text"]

_OLDEST_MAJOR = 12


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An opened CUPTI, for the life of the process.

    Attributes:
        cupti: its functions.
        driver: the driver's.
        layout: how long its records are.
        found: the file.
        devices: the GPUs that this process may use, by index.
        doubts: what is odd about this pair of library and driver, a sentence each.
    """

    cupti: Cupti
    driver: Driver
    layout: Layout
    found: Found
    devices: dict[int, DeviceFacts] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


def open_cupti() -> Access:
    """Open CUPTI, or return what was opened before in this process.

    Raises:
        CudaUnavailableError: it cannot be used here; the message says why and what to do.
        CuptiError: the library failed at its first call.
    """
    access, opened_by = _open()
    if opened_by != os.getpid():
        raise CudaUnavailableError(
            "CUDA tracing is off: this process was forked after CUPTI was opened, and CUDA does not work in such a child. "
            "Start children with multiprocessing's 'spawn'."
        )
    return access


@cache  # a failure is not kept: a driver may come, another profiler may go
def _open() -> tuple[Access, int]:
    driver = load_driver()
    _check_driver(driver)
    found = find_libcupti(driver.major)
    driver.start()  # before the releases are compared: where it shows no GPU, that is what there is to say
    _check_release(driver, found)
    try:
        library = ctypes.CDLL(found.path)  # not PyDLL: a call must drop the GIL
    except OSError as error:
        raise CudaUnavailableError(
            f"CUDA tracing is off: {found.path} ({found.how}) cannot be loaded: {error}"
        ) from error
    copies = loaded_copies()
    if len(copies) > 1:
        raise CudaUnavailableError(
            f"CUDA tracing is off: two libcupti are loaded in this process: {' and '.join(copies)}."
        )
    functions = functions_of(library)
    if "cuptiGetVersion" not in functions:
        raise CudaUnavailableError(f"CUDA tracing is off: {found.path} ({found.how}) is no libcupti.")
    cupti = Cupti(functions, copies[0] if copies else found.path)
    layout, doubts = calibrated(cupti)
    return Access(cupti, driver, layout, found, driver.devices(), doubts), os.getpid()


def calibrated(cupti: Cupti) -> tuple[Layout, tuple[str, ...]]:
    """Return how long a library's records are as it says itself, and where that is not what its release should have.

    Raises:
        CudaUnavailableError: the library is too old.
    """
    try:
        table = expected(cupti.version)
        measured = {int(kind): cupti.stride(int(kind)) for kind in FIELDS}
        layout = Layout(cupti.version, {kind: stride for kind, stride in measured.items() if stride})
    except ValueError as error:
        raise CudaUnavailableError(f"CUDA tracing is off: {error}.") from error
    if not layout.strides:
        return table, (
            "this libcupti does not step through records; their lengths are taken from the published headers",
        )
    return layout, layout.differences(table)


def release_text(version: int) -> str:
    """Return in words what ``cuptiGetVersion`` says."""
    try:
        return f"CUDA {release_of(version)} (CUPTI API {version})"
    except ValueError:
        return f"CUPTI API {version}"


def facts_of(access: Access) -> dict[str, str]:
    """Return the releases and files that a message or a report should name."""
    gpus = ", ".join(sorted({facts.name for facts in access.devices.values()})) or "none"
    installed = ", ".join(f"{name} {version}" for name, version in packages().items()) or "none"
    return {
        "GPU": gpus,
        "driver": f"supports CUDA {access.driver.release}",
        "libcupti": f"{access.cupti.path} ({access.found.how}), {release_text(access.cupti.version)}",
        "NVIDIA packages": installed,
    }


def _check_driver(driver: Driver) -> None:
    """Refuse a driver that no libcupti which devprof can use works with.

    Raises:
        CudaUnavailableError: it is too old.
    """
    if 0 < driver.major < _OLDEST_MAJOR:
        raise CudaUnavailableError(
            f"CUDA tracing is off: the driver is too old, it supports CUDA {driver.release}. Install a newer driver (570 or "
            "later, that of CUDA 12.8)."
        )


def _check_release(driver: Driver, found: Found) -> None:
    """Refuse a library for a newer major release of CUDA before anything of it is called.

    Raises:
        CudaUnavailableError: the driver is too old for the file.
    """
    if found.fits(driver.major):
        return
    raise CudaUnavailableError(
        f"CUDA tracing is off: the driver is too old for CUPTI {found.major} ({found.path}, {found.how}): it supports CUDA "
        f"{driver.release}. Install a newer driver (580 or later for CUDA 13), or {_older(found, driver.major)}."
    )


def _older(found: Found, major: int) -> str:
    """Return how to get a libcupti of an older CUDA release in the place of a file."""
    if found.how == LOADED:
        return f"of what has loaded that file the build for CUDA {major}"
    if found.how == PATH_VARIABLE:
        return f"name a libcupti of CUDA {major} in {PATH_VARIABLE}"
    package = f"nvidia-cuda-cupti<{major + 1}" if major > _OLDEST_MAJOR else f"nvidia-cuda-cupti-cu{major}"
    return f"the packages of CUDA {major} (`pip install '{package}'`)"
