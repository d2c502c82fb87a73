"""Trace files of other tools, as columns.

Job: parse a file into a `Trace`, exactly and completely, and say what could not be read.
In: the path of a Kineto or Chrome JSON file, or of an SQLite export of nvprof or Nsight Systems.
Out: a `Trace` whose events have no parent yet; `facts["file"]` holds what was left out and why.
Never: links or nests events, or trusts a file: whatever it holds, the outcome is a trace or a `TraceFileError`.
"""

from devprof.store.readers.kineto import MAX_BYTES, read_kineto
from devprof.store.readers.nsys import is_nsys, read_nsys
from devprof.store.readers.nvprof import read_nvprof

__all__ = ["MAX_BYTES", "is_nsys", "read_kineto", "read_nsys", "read_nvprof"]
