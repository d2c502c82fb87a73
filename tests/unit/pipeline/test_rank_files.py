"""Files of many ranks: merged and asked in processes of their own, with nothing left behind."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devprof import store
from devprof.errors import CaptureError, TraceFileError, UsageError
from devprof.pipeline.ranks import merge, merge_files, per_rank
from devprof.store import COLUMNS, Trace
from tests.unit.pipeline.rank_traces import BEGIN_NS, Collective, rank_trace

N_RANKS = 3


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A file of each rank, not in their order."""
    paths = []
    for rank in (2, 0, 1):
        trace = rank_trace(rank=rank, n_ops=rank, collectives=[Collective("allreduce", BEGIN_NS + rank)])
        paths.append(tmp_path / f"{rank}.devprof")
        trace.save(paths[-1])
    return paths


def content(trace: Trace) -> dict[str, Any]:
    columns = {key: getattr(trace, key).tolist() for key in COLUMNS}
    items = {key: (one.kind, one.events.tolist(), one.values.tolist()) for key, one in trace.items.items()}
    window = (trace.window_start_ns, trace.window_end_ns)
    return {**columns, "items": items, "texts": trace.strings, "places": trace.places, "rows": trace.rows, "w": window,
            "facts": trace.facts}  # fmt: skip


def n_events(trace: Trace) -> int:
    return len(trace)


def in_which_process(trace: Trace) -> tuple[int, int]:
    return len(trace), os.getpid()


def die(trace: Trace) -> None:
    os._exit(len(trace) and 3)


@pytest.mark.parametrize("align", ["clock", "collectives"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_merged_file_holds_what_merging_in_memory_gives(
    files: list[Path], tmp_path: Path, workers: int, align: Any
) -> None:
    out = tmp_path / "all.devprof"
    facts = merge_files(files, out, workers=workers, align=align)
    assert content(store.load(out)) == content(merge(files, align=align))
    assert [one["rank"] for one in facts["ranks"]] == [2, 0, 1]  # type: ignore[attr-defined]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([path.name for path in files] + [out.name])


def test_another_format_is_written_by_what_writes_it(files: list[Path], tmp_path: Path) -> None:
    def write(trace: Trace, path: Path) -> None:
        path.write_text(f"{len(trace)} events")

    merge_files(files, tmp_path / "all.txt", workers=1, write=write)
    assert (tmp_path / "all.txt").read_text() == f"{len(merge(files))} events"


def test_one_file_that_is_no_trace_is_named_and_nothing_is_left(files: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(TraceFileError, match=r"broken\.json"):
        merge_files([*files, broken], tmp_path / "all.devprof", workers=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_folder_that_is_not_there_and_no_workers_are_wrong_use(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        merge_files(files, tmp_path / "absent" / "all.devprof")
    with pytest.raises(UsageError, match="workers is 0; expected 1 or more"):
        merge_files(files, tmp_path / "all.devprof", workers=0)


def test_a_question_is_answered_for_every_rank_in_their_order(files: list[Path]) -> None:
    expected = {rank: len(store.load(path)) for rank, path in sorted(zip((2, 0, 1), files, strict=True))}
    assert list(per_rank(files, n_events, workers=1).items()) == list(expected.items())
    with ThreadPoolExecutor(2) as pool:
        assert per_rank(files, n_events, client=pool) == expected


def test_processes_of_their_own_read_the_files(files: list[Path]) -> None:
    found = per_rank(files, in_which_process, workers=2)
    assert [found[rank][0] for rank in range(N_RANKS)] == [len(store.load(path)) for path in sorted(files)]
    assert os.getpid() not in {process for _, process in found.values()}


def test_a_process_that_dies_is_said_and_not_waited_for(files: list[Path]) -> None:
    with pytest.raises(CaptureError, match="ended before its work was done"):
        per_rank(files, die, workers=2)


def test_an_engine_that_runs_already_is_used_and_only_answers_travel(files: list[Path]) -> None:
    class Engine:
        sent: list[Any]

        def map(self, func: Any, jobs: Any, *, pure: bool) -> list[Any]:
            assert not pure  # files change
            self.sent = list(jobs)
            return [functools.partial(func, job) for job in self.sent]

        def gather(self, futures: list[Any]) -> list[Any]:
            return [call() for call in futures]

    engine = Engine()
    found = per_rank(files, n_events, client=engine)
    assert found == per_rank(files, n_events, workers=1)
    assert engine.sent == [(str(path), n_events) for path in files]


@pytest.mark.filterwarnings("default")  # of the engine's own
def test_the_questions_of_analysis_are_answered_on_a_dask_cluster(files: list[Path], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    from devprof import analysis
    from devprof.analysis.ranks import by_rank

    options: Mapping[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, local_directory=str(tmp_path), **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        answers = per_rank(files, analysis.device_breakdown, client=client)
        processes = per_rank(files, in_which_process, client=client)
    table = by_rank(answers)
    expected = by_rank(per_rank(files, analysis.device_breakdown, workers=1))
    assert list(table) == list(expected)
    assert np.unique(table.columns["rank"]).tolist() == [0, 1, 2]
    assert os.getpid() not in {process for _, process in processes.values()}
