"""`FunctionEvent`: one listed event, under torch's names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from devprof.analysis.figures import Figure, Figures
from devprof.analysis.formatting import time_text
from devprof.analysis.names import STEP
from devprof.analysis.rows import Figured
from devprof.analysis.shapes import DIMS, plain, structured
from devprof.model import ActivityType
from devprof.store import HOST_BACKEND, ItemValue

if TYPE_CHECKING:
    from devprof.analysis.lists import Lists

__all__ = ["FunctionEvent", "Interval", "Kernel"]

_USER_SCOPE = 7


class Interval(NamedTuple):
    """When something ran, us since the window began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return the length, us."""
        return self.end - self.start


class Kernel(NamedTuple):
    """A piece of device work that belongs to a host event: its name, the device's index, its duration in us."""

    name: str
    device: int
    duration: float


class FunctionEvent(Figured):
    """One event of a trace, read when it is asked; as torch's `FunctionEvent` (torch/autograd/profiler_util.py).

    Times are microseconds since the capture window began, as floats; `start_ns` and `end_ns` are Unix ns. A backend is named
    by text ("cpu", "openreg"), where torch has its own enumeration.
    """

    __slots__ = ("_lists", "_place")

    count = 1
    node_id = -1
    is_remote = False
    is_legacy = False

    def __init__(self, lists: Lists, place: int) -> None:
        self._lists = lists
        self._place = place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionEvent) and (self._lists, self._place) == (other._lists, other._place)

    def __hash__(self) -> int:
        return hash((id(self._lists), self._place))

    def __repr__(self) -> str:
        device = f", device_time={time_text(self.device_time_total_ns)}" if self._backends else ""
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} thread={self.thread} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_time={time_text(self.cpu_time_total_ns)}{device}>"
        )

    @property
    def _figures(self) -> Figures:
        return self._lists.figures

    @property
    def _backends(self) -> tuple[str, ...]:
        return self._figures.backends

    def _figure(self, figure: Figure) -> int:
        for first, values in self._figures.parts(figure):
            if 0 <= self._place - first < len(values):
                return int(values[self._place - first])
        return 0

    @property
    def event(self) -> int:
        """Index of the event in the trace."""
        return int(self._figures.events[self._place])

    def item(self, key: str) -> ItemValue | None:
        """Return an item of the event, or None where it has none."""
        return self._figures.trace.item(key, self.event)

    @property
    def metadata(self) -> dict[str, ItemValue]:
        """All items of the event."""
        return self._figures.trace.items_of(self.event)

    @property
    def metadata_json(self) -> str:
        """All items of the event, as JSON."""
        return json.dumps(self.metadata)

    @property
    def name(self) -> str:
        """Name; a step of the profiler is called "ProfilerStep*", whichever it is."""
        return self._figures.names.keys[int(self._figures.key[self._place])]

    @property
    def key(self) -> str:
        """What averages group by: the name."""
        return self.name

    @property
    def trace_name(self) -> str:
        """Name, with the number of a step of the profiler."""
        name = self._figures.trace.name_of(self.event)
        return name if name.startswith(STEP) else self.name

    @property
    def id(self) -> int:
        """Op id of an op or range, launch number of a launch or of device work."""
        return int(self._figures.trace.id[self.event])

    @property
    def linked_correlation_id(self) -> int:
        """Op id of the op that launched this, 0: none; ops and ranges have none."""
        trace, event = self._figures.trace, self.event
        is_op = trace.activity_type[event] in (ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)
        return 0 if is_op else int(trace.linked[event])

    @property
    def external_id(self) -> int:
        """Op id that it belongs to: its own of an op or range."""
        is_op = self.is_user_annotation or self._figures.trace.activity_type[self.event] == ActivityType.CPU_OP
        return self.id if is_op else self.linked_correlation_id

    @property
    def activity_type(self) -> str:
        """Kineto's name of its kind."""
        return ActivityType(int(self._figures.trace.activity_type[self.event])).label

    @property
    def start_ns(self) -> int:
        """Unix ns."""
        return int(self._figures.trace.start_ns[self.event])

    @property
    def end_ns(self) -> int:
        """Unix ns."""
        return int(self._figures.end_ns[self._place])

    @property
    def time_range(self) -> Interval:
        """When it ran, us since the window began."""
        base_ns = self._figures.trace.window_start_ns
        return Interval((self.start_ns - base_ns) / 1000, (self.end_ns - base_ns) / 1000)

    @property
    def thread(self) -> int:
        """Id of the host thread: where it began, or of the op that it belongs to; 0: none."""
        row = self._lists.thread_row(self._place)
        return self._figures.trace.rows[row].id if row >= 0 else 0

    @property
    def fwd_thread(self) -> int:
        """Thread of the forward op of a backward one, 0: none."""
        return self._whole("Fwd thread id", 0)

    @property
    def sequence_nr(self) -> int:
        """Sequence number, -1: none."""
        return self._whole("Sequence number", -1)

    @property
    def scope(self) -> int:
        """Number of its `RecordScope`."""
        is_range = self._figures.trace.activity_type[self.event] == ActivityType.USER_ANNOTATION
        return self._whole("Record scope", _USER_SCOPE if is_range else 0)

    @property
    def python_id(self) -> int:
        """Number of a Python function's call, -1: it is none."""
        return self._whole("Python id", -1)

    @property
    def python_parent_id(self) -> int:
        """Number of the call around it, -1: none."""
        return self._whole("Python parent id", -1)

    @property
    def python_module_id(self) -> int:
        """Number of the module that was called, -1: none."""
        return self._whole("Python module id", -1)

    def _whole(self, key: str, missing: int) -> int:
        value = self.item(key)
        return int(value) if isinstance(value, int) else missing

    @property
    def is_async(self) -> bool:
        """Whether it ended on another thread than it began on."""
        return bool(self._figures.is_async[self._place])

    @property
    def is_user_annotation(self) -> bool:
        """Whether it is a range that the user named, on the host or on a device."""
        return bool(self._figures.is_annotation[self._place])

    @property
    def is_python_function(self) -> bool:
        """Whether it is the call of a Python function."""
        return bool(self._figures.trace.activity_type[self.event] == ActivityType.PYTHON_FUNCTION)

    @property
    def device_type(self) -> str:
        """Name of the backend whose it is, "cpu" for what ran on the host."""
        return self._figures.backend_name(self._place)

    @property
    def use_device(self) -> str | None:
        """Names of the backends whose devices are in the trace, None where there are none."""
        return "+".join(self._backends) or None

    @property
    def device_index(self) -> int:
        """Index of the device, or id of the process."""
        trace = self._figures.trace
        return trace.places[trace.rows[int(trace.row[self.event])].place].id

    @property
    def device_resource_id(self) -> int:
        """Number of the stream, or id of the thread."""
        trace = self._figures.trace
        return trace.rows[int(trace.row[self.event])].id

    @property
    def flow_id(self) -> int:
        """Number of the arrow that starts or ends here, 0: none."""
        return int(self._figures.trace.flow_id[self.event])

    @property
    def flow_type(self) -> int:
        """Type of the arrow."""
        return int(self._figures.trace.flow_type[self.event])

    @property
    def flow_start(self) -> bool:
        """Whether the arrow starts here."""
        return bool(self._figures.trace.flow_start[self.event])

    @property
    def overload_name(self) -> str:
        """Name of the op's overload, "" where it is not known."""
        return str(self.item("Overload name") or "")

    @property
    def structured_input_shapes(self) -> list[Any]:
        """Shapes of the inputs; of a list of tensors a list of shapes."""
        return structured(self._text(DIMS))

    @property
    def input_shapes(self) -> list[list[int]]:
        """Shapes of the inputs; of a list of tensors an empty one."""
        return plain(self.structured_input_shapes)

    @property
    def structured_input_strides(self) -> list[Any]:
        """Strides of the inputs, as `structured_input_shapes`."""
        return structured(self._text("Input Strides"))

    @property
    def input_dtypes(self) -> list[Any]:
        """Types of the inputs."""
        return structured(self._text("Input type"))

    @property
    def concrete_inputs(self) -> list[Any]:
        """Values of the inputs that are no tensors, as text; "" for the others."""
        return structured(self._text("Concrete Inputs"))

    def _text(self, key: str) -> str | None:
        value = self.item(key)
        return value if isinstance(value, str) else None

    @property
    def flops(self) -> int:
        """Floating point operations, 0 where they are not known."""
        return self._figure(Figure("flops", HOST_BACKEND))

    @property
    def stack(self) -> list[str]:
        """Python functions that were running when it began, the innermost first."""
        return self._lists.stacks.of(self._place)

    @property
    def cpu_parent(self) -> FunctionEvent | None:
        """The host event around it, None for device events and at the top."""
        parent = int(self._figures.parent[self._place])
        return FunctionEvent(self._lists, parent) if parent >= 0 else None

    @property
    def cpu_children(self) -> Sequence[FunctionEvent]:
        """The host events directly inside, in order."""
        return [FunctionEvent(self._lists, place) for place in self._lists.children.of(self._place)]

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The device work that belongs to it alone."""
        work = (FunctionEvent(self._lists, place) for place in self._lists.work.of(self._place))
        return [Kernel(one.name, one.device_index, (one.end_ns - one.start_ns) / 1000) for one in work]
