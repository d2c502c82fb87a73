"""A trace in the file formats of other tools.

Job: write a `Trace` as Chrome JSON in Kineto's shape, as Perfetto's protobuf, for speedscope, as folded stacks, and as a table;
    lanes are assigned here.
In: a finished `Trace` and a file name.
Out: a file that is whole or not there, written in pieces.
Never: changes a trace, asks a question that `analysis` answers, or reads a file.
"""

from devprof.export.background import BackgroundExport, in_background
from devprof.export.chrome import chrome_trace
from devprof.export.perfetto import perfetto_trace
from devprof.export.speedscope import speedscope
from devprof.export.stacks import METRICS, folded, stacks
from devprof.export.tables import table

__all__ = [
    "METRICS",
    "BackgroundExport",
    "chrome_trace",
    "folded",
    "in_background",
    "perfetto_trace",
    "speedscope",
    "stacks",
    "table",
]
