"""Names of calls, as torch writes them: ``file.py(12): name``, ``<built-in function len>``, ``nn.Module: Linear_0``.

Source: torch/csrc/autograd/profiler_python.cpp and torch/csrc/profiler/collection.cpp.
"""

from __future__ import annotations

import functools
import os
import site
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import numpy as np
import numpy.typing as npt

from devprof.host.functions.events import CALL_OF_C, INDEX_SHIFT, MODULE, Captured
from devprof.host.functions.pairing import Calls

__all__ = ["call_names", "path_shortener"]


def call_names(captured: Captured, calls: Calls) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the distinct names, and for every call the index of its own. Loops over distinct places, not over calls."""
    places = calls.what.astype(np.int64) << 32 | calls.extra.view(np.uint32)
    distinct, which = np.unique(places, return_inverse=True)
    short = path_shortener()
    texts = [_name(captured, short, place >> 32, (place & 0xFFFFFFFF ^ 2**31) - 2**31) for place in distinct.tolist()]
    table = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    return list(table), np.array([table[text] for text in texts], np.int64)[which.reshape(-1)]


def _name(captured: Captured, short: Callable[[str], str], what: int, extra: int) -> str:
    index = what >> INDEX_SHIFT
    if what & CALL_OF_C:
        return captured.c_names[index]
    if what & MODULE:
        return "nn.Module: {}_{}".format(*captured.modules[extra])
    code = captured.codes[index]
    return f"{short(code.co_filename)}({_line(code, extra)}): {code.co_name}"


def _line(code: CodeType, offset: int) -> int:
    lines = (line for start, end, line in code.co_lines() if start <= offset < end and line is not None)
    return next(lines, code.co_firstlineno)


def path_shortener() -> Callable[[str], str]:
    """Return a function that takes the longest directory of imports off a path.

    Source: torch/profiler/python_tracer.py, and trimPrefixes in torch/csrc/autograd/profiler_python.cpp.
    """
    folders = [*site.getsitepackages(), *sys.path, site.getuserbase(), site.getusersitepackages()]
    # made absolute without following links, as the paths of code objects are
    prefixes = [folder + os.sep for folder in sorted({str(Path(f).absolute()) for f in folders}, reverse=True)]

    @functools.cache
    def short(path: str) -> str:
        return next((path[len(prefix) :] for prefix in prefixes if path.startswith(prefix)), path)

    return short
