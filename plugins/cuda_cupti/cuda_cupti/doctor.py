"""What ``devprof doctor`` says of CUDA here: driver, library, whether they fit, who may profile, and who else is there.

It says that tracing is ready only after it has recorded for a moment, as a session does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cuda_cupti.access import Access, open_cupti, release_text
from cuda_cupti.coexistence import check_alone
from cuda_cupti.discovery import loaded_copies, packages
from cuda_cupti.errors import CudaUnavailableError, CuptiError, NoDriverError
from cuda_cupti.layouts import release_of
from cuda_cupti.profiler import CudaProfiler
from devprof.contract import SessionConfig
from devprof.model import ActivityType

__all__ = ["doctor_lines"]

_PARAMETERS = Path("/proc/driver/nvidia/params")


def doctor_lines() -> Iterator[str]:
    """Yield the lines; where CUDA cannot be traced the first says why."""
    installed = packages()
    try:
        access = open_cupti()
        yield f"driver: supports CUDA {access.driver.release}"
        yield f"libcupti: {access.cupti.path} ({access.found.how}), {release_text(access.cupti.version)}"
        yield from (f"GPU {index}: {facts.name}, {facts.uuid}" for index, facts in access.devices.items())
        yield from _doubts(access, installed)
        yield from _trial()
    except NoDriverError as error:
        yield str(error)
        return  # nothing of NVIDIA's is of interest then
    except (CudaUnavailableError, CuptiError) as error:
        yield str(error)
        yield from (f"libcupti loaded: {path}" for path in loaded_copies())
    yield f"NVIDIA packages: {', '.join(f'{name} {version}' for name, version in installed.items()) or 'none'}"
    if (restricted := restriction()) is not None:
        yield f"profiling by users other than the administrator: {'restricted' if restricted else 'allowed'}{_WHERE}"


def _trial() -> Iterator[str]:
    """Record nothing for a moment, and give everything back; yield what came of it.

    Raises:
        CudaUnavailableError, CuptiError: it cannot be done, or somebody else records in this process.
    """
    check_alone("python")  # first: while another profiler records, nothing of CUPTI is touched
    profiler = CudaProfiler()
    types = profiler.available_activities() - {ActivityType.CUDA_SYNC}  # as a session that asks for nothing by name
    session = profiler.configure(types, SessionConfig(host="python", named=True))
    if session is None:
        return
    try:
        session.start()
    except CudaUnavailableError as error:
        # the session's words without the releases, which stand above
        raise error.__cause__ if isinstance(error.__cause__, CuptiError) else error from None
    session.stop()
    session.get_trace_buffer()
    said = session.errors()
    yield from said
    yield "tracing: ready, but for what is said above" if said else "tracing: ready"


def restriction(parameters: Path = _PARAMETERS) -> bool | None:
    """Return whether the driver lets only administrators read counters; None where it does not say."""
    try:
        found = re.search(r"^RmProfilingAdminOnly: (\d+)$", parameters.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else found[1] != "0"


_WHERE = " (RmProfilingAdminOnly; concerns counters, and tracing only in some containers and on old drivers)"


def _doubts(access: Access, installed: dict[str, str]) -> Iterator[str]:
    yield from (f"in doubt: {doubt}" for doubt in access.doubts)
    bindings = installed.get("cupti-python", "")
    try:
        release = release_of(access.cupti.version)
    except ValueError:
        release = ""
    if bindings and release and bindings.split(".")[:2] != release.split("."):
        yield (
            f"cupti-python {bindings} is not of the release of the loaded libcupti, {release}: its objects have wrong "
            "values in their last fields. devprof does not use it; programs that do need one release of both"
        )
