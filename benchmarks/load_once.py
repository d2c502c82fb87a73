"""``python load_once.py LOADER FILE``: load one file in a process of its own; prints its CPU seconds and memory.

Imports devprof for its own loaders only, so that peers can run in an environment of theirs.
"""

from __future__ import annotations

import gc
import gzip
import json
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Load = Callable[[Path], Any]

_EVENT = {
    "ph": "X",
    "cat": "cpu_op",
    "name": "a",
    "pid": 1,
    "tid": 1,
    "ts": 1.5,
    "dur": 1.5,
    "args": {"External id": 1},
}


def plain_json(path: Path) -> Any:
    """Load by the standard library, as anybody would."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return json.load(file)
    with path.open(encoding="utf-8") as file:
        return json.load(file)


def hta(path: Path) -> Any:
    """Load by Holistic Trace Analysis."""
    from hta.trace_analysis import TraceAnalysis

    return TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))


def _touched(trace: Any, columns: Iterable[str]) -> Any:
    """Read all of what a saved trace maps."""
    for key in columns:
        getattr(trace, key).max()
    for column in (*trace.items.values(), *trace.counters.values()):
        column.events.max()
        column.values.max()
    return trace


def _of_devprof(name: str) -> Load:
    from devprof.pipeline.files import joined, load
    from devprof.store.trace import COLUMNS

    if name == "devprof":
        return load
    if name == "devprof-saved":
        return lambda path: _touched(load(path), COLUMNS)
    from devprof.store.readers import python_decoder, read_kineto
    from devprof.store.readers.json_plain import PlainDecoder

    made = PlainDecoder if name == "devprof-stdlib" else python_decoder
    return lambda path: joined(read_kineto(path, decoder=made()))


def _warm(load: Load) -> None:
    """Load something small, so that what happens once per process is not measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.json"
        path.write_text(json.dumps({"traceEvents": [_EVENT] * 100}), encoding="utf-8")
        load(path)


def main() -> None:
    """Load the file that the command line names."""
    name, path = sys.argv[1], Path(sys.argv[2])
    logging.disable(logging.CRITICAL)
    load = {"json": plain_json, "hta": hta}.get(name) or _of_devprof(name)
    if load is not hta and name != "devprof-saved":  # of what these take there is no small one
        _warm(load)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    loaded = load(path)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    del loaded
    print(json.dumps({"seconds": seconds, "bytes": (peak - before) * 1024}))


if __name__ == "__main__":
    main()
