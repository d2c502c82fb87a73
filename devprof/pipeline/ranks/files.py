"""Many files: merged, or asked one by one, with bounded memory."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from devprof import store
from devprof.errors import CaptureError, UsageError
from devprof.pipeline.files import load
from devprof.pipeline.ranks.clocks import Align
from devprof.pipeline.ranks.merging import merged, rank_of
from devprof.store import Trace

__all__ = ["Engine", "merge_files", "per_rank"]

Given = TypeVar("Given")
Made = TypeVar("Made")
PathLike = str | os.PathLike[str]

_MOST_WORKERS = 8


class Engine(Protocol):
    """What a `dask.distributed.Client` can do, as far as it is needed here."""

    def map(self, func: Callable[..., Any], *iterables: Any, pure: bool) -> Any:
        """Call a function for each item, somewhere; return futures."""

    def gather(self, futures: Any) -> Any:
        """Wait for futures and return their results, in their order."""


def merge_files(
    paths: Iterable[PathLike],
    out: PathLike,
    *,
    align: Align = "clock",
    workers: int | None = None,
    write: Callable[[Trace, Path], object] = store.save,
) -> Mapping[str, object]:
    """Merge the files of several ranks into one file, and return the facts of the merged trace; see `merge`.

    Files are read by up to `workers` processes, one file each at a time; each leaves its columns in a private folder beside
    `out`, which is removed at the end and needs the space of the traces twice. From there on columns are mapped into memory,
    not held in it: what must fit is `workers` of the traces, then one column and the texts.

    The processes are started afresh, so a script that calls this must do so under ``if __name__ == "__main__":``; with one
    worker everything happens in this process.

    Args:
        paths: files in any format that devprof reads, one per rank.
        out: the file to write, whole or not at all.
        align: see `merge`.
        workers: most processes; None: one for each core and file, 8 at most.
        write: what writes the trace.

    Raises:
        UsageError, TraceFileError: as `merge`; or the folder of `out` does not exist.
        OSError: a file cannot be written.
        CaptureError: a process ended before its work was done, such as for want of memory.
    """
    files, target = [Path(path) for path in paths], Path(out)
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {target}: there is no directory {target.parent}; make it first")
    with tempfile.TemporaryDirectory(prefix=f".{target.name[:100]}.", suffix=".merge", dir=target.parent) as name:
        folder = Path(name)
        jobs = [(path, folder / f"{number}.devprof") for number, path in enumerate(files)]
        traces = [store.load(path) for path in _in_processes(_as_own_file, jobs, workers)]
        whole = merged(traces, [str(path) for path in files], align=align, allocate=_Mapped(folder))
        write(whole, target)
        return whole.facts


def per_rank(
    paths: Iterable[PathLike],
    question: Callable[[Trace], Made],
    *,
    client: Engine | Executor | None = None,
    workers: int | None = None,
) -> dict[int, Made]:
    """Ask every rank's file one question where the file is, and return the answers by rank; only answers travel.

    Ranks are numbered as by `merge`. `devprof.analysis.by_rank` makes one table of the answers.

    Args:
        paths: files in any format that devprof reads, one per rank; with a `client` its workers must find them there.
        question: a function of a module, such as `devprof.analysis.device_breakdown`, or a `functools.partial` of one.
        client: a `dask.distributed.Client`, or any `concurrent.futures.Executor`, that runs already; None: processes of this
            machine, started afresh (see `merge_files`).
        workers: most processes where there is no client; None: one for each core and file, 8 at most.

    Raises:
        TraceFileError: as `merge`; also whatever the question raises.
        CaptureError: a process ended before its work was done.
    """
    jobs = [(os.fspath(path), question) for path in paths]
    if client is None:
        found = _in_processes(_answered, jobs, workers)
    elif isinstance(client, Executor):
        found = list(client.map(_answered, jobs))
    else:
        found = list(client.gather(client.map(_answered, jobs, pure=False)))
    said = [rank for rank, _ in found if rank is not None]
    ranks = said if len(set(said)) == len(found) else list(range(len(found)))
    return {rank: answer for rank, (_, answer) in sorted(zip(ranks, found, strict=True), key=lambda pair: pair[0])}


def _answered(job: tuple[str, Callable[[Trace], Made]]) -> tuple[int | None, Made]:
    path, question = job
    trace = load(path)
    return rank_of(trace), question(trace)


def _as_own_file(job: tuple[Path, Path]) -> Path:
    """Return a file of devprof's own format with that trace: itself, or one that is written."""
    path, target = job
    if zipfile.is_zipfile(path):
        return path
    store.save(load(path), target)
    return target


def _in_processes(call: Callable[[Given], Made], jobs: Sequence[Given], workers: int | None) -> list[Made]:
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}; expected 1 or more")
    most = workers or min(len(os.sched_getaffinity(0)), _MOST_WORKERS)
    if min(most, len(jobs)) < 2:
        return [call(job) for job in jobs]
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import get_context

    try:
        # not forked: a copy of a process with threads may hang
        with ProcessPoolExecutor(min(most, len(jobs)), mp_context=get_context("spawn")) as pool:
            return list(pool.map(call, jobs))
    except BrokenProcessPool as error:
        raise CaptureError(
            "a process that read traces ended before its work was done: for want of memory (try fewer workers), or because the "
            "program that asked does so outside `if __name__ == '__main__':` (or use workers=1)"
        ) from error


class _Mapped:
    """Gives arrays that are mapped to files of a folder, so that the system may put them out of memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    def __call__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        if not all(shape):
            return np.empty(shape, dtype)
        return np.memmap(self._folder / f"{next(self._numbers)}.column", dtype=dtype, mode="w+", shape=shape)
