"""Calls of Python and C functions, as the profiler's stacks need them.

Job: record enters and leaves of functions on every thread that can be reached, and pair them into records when tracing stops.
In: the interpreter's own hook: `sys.monitoring` on 3.12 and later, the profile function on 3.11.
Out: one `ActivityBatch` of PYTHON_FUNCTION records on the clock of the ticks, and notes on what could not be seen.
Never: replaces another tool's hook, or keeps a Python object for each event.
"""

from devprof.host.functions.build_spec import FUNCTIONS
from devprof.host.functions.tracer import HOST_TICKS, FunctionTracer, function_tracer

__all__ = ["FUNCTIONS", "HOST_TICKS", "FunctionTracer", "function_tracer"]
