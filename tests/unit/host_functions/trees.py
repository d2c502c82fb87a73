"""Records of functions as indented lines, without what differs from run to run."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from devprof.host.functions import FunctionTracer, function_tracer
from devprof.model import ActivityBatch


@dataclass(frozen=True)
class Traced:
    """What a tracer returned."""

    tracer: FunctionTracer
    batch: ActivityBatch

    def names(self) -> list[str]:
        return [short(self.batch.strings[index]) for index in self.batch.name]

    def tree(self, root: str = "program") -> list[str]:
        """Return the first call of `root` and what it called, one line each, indented by depth."""
        names, parents = self.names(), self.parents()
        first = names.index(root)
        depth = {first: 0}
        for row in range(first + 1, len(names)):
            if parents[row] in depth:
                depth[row] = depth[parents[row]] + 1
        return ["  " * indent + names[row] for row, indent in depth.items()]

    def parents(self) -> list[int]:
        """Return the row of the call around each call, -1 for none."""
        column = self.batch.metadata["Python parent id"]
        rows = {int(number): row for row, number in enumerate(self.batch.metadata["Python id"].values)}
        return [rows[int(column.values[row])] if column.has(row) else -1 for row in range(len(self.batch))]

    def unfinished(self) -> list[str]:
        column = self.batch.metadata["finished"]
        return [name for row, name in enumerate(self.names()) if column.has(row) and not column.values[row]]

    def rows(self, name: str) -> Iterator[int]:
        return (row for row, found in enumerate(self.names()) if found == name)


def short(name: str) -> str:
    """Return a name without file, line and address: ``f``, ``len()``, ``list.append()``, ``nn.Module: Linear_0``."""
    name = re.sub(r"^.*\(\d+\): ", "", name)
    name = re.sub(r"^<built-in function (.*)>$", r"\1()", name)
    return re.sub(r"^<built-in method (\S+) of (\S+) object at 0x[0-9a-f]+>$", r"\2.\1()", name)


def traced(program: Callable[[], object], **options: object) -> Traced:
    """Run a program under a tracer of the core that the environment asks for."""
    tracer = function_tracer(**options)  # type: ignore[arg-type]
    gc.disable()  # a collection calls what other tools have in gc.callbacks, in the middle of a tree
    tracer.start()
    try:
        program()
    finally:
        batch = tracer.stop()
        gc.enable()
    return Traced(tracer, batch)
