"""Trace files of other tools, as columns.

Job: parse a file into a `Trace`, exactly and completely, and say what could not be read.
In: the path of a Kineto or Chrome JSON file, or of an SQLite export of nvprof or Nsight Systems.
Out: a `Trace` whose events have no parent yet; `facts["file"]` holds what was left out and why.
Never: links or nests events, or trusts a file: whatever it holds, the outcome is a trace or a `TraceFileError`.
"""

from devprof.store.readers.build_spec import JSON
from devprof.store.readers.json_blocks import Progress
from devprof.store.readers.json_choice import native_decoder, python_decoder
from devprof.store.readers.json_chunks import Decoder
from devprof.store.readers.kineto import MAX_BYTES, read_kineto
from devprof.store.readers.nsys import is_nsys, read_nsys
from devprof.store.readers.nvprof import read_nvprof

__all__ = [
    "JSON",
    "MAX_BYTES",
    "Decoder",
    "Progress",
    "is_nsys",
    "native_decoder",
    "python_decoder",
    "read_kineto",
    "read_nsys",
    "read_nvprof",
]
