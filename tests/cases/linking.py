"""What linking must give, as data: records in, links out. Both hosts are tested with these cases.

Times are ns after an arbitrary zero; `Case.records_at` and `Case.window_at` put them somewhere in Unix time. Expectations name
other records by their position in the case, so that no test depends on which numbers are given out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from devprof.model import ActivityType, Flow, GenericTraceActivity, kLinkAsyncCpuGpu, kLinkFwdBwd

US = 1_000
OWN = -1
"""In an expectation: the record itself."""


class Kept(NamedTuple):
    """A record that is in the trace.

    Attributes:
        op: op id that it is linked to, 0: none.
        user: user id of its range, 0: none.
        number: position of the record whose launch number it shares; `OWN`: it has one of its own.
        arrow: position of the record where its arrow starts; `OWN`: it starts one itself; None: no arrow.
        skewed: whether it is marked as starting before its launch.
    """

    op: int = 0
    user: int = 0
    number: int = OWN
    arrow: int | None = None
    skewed: bool = False


class Gone(NamedTuple):
    """A record that the window leaves out, and why."""

    reason: str


class Span(NamedTuple):
    """A user range on a device. `row` is 1 on the stream's own row, 2 on the first added one, and so on."""

    user: int
    device: int
    stream: int
    start: int
    end: int
    row: int = 1


@dataclass(frozen=True)
class Case:
    """Records of one plugin, and what linking must make of them.

    Attributes:
        name: the promise.
        records: what the plugin hands over, times in ns after zero.
        expected: one entry per record.
        known_ops: op ids that the host recorded; None: all.
        user_parents: enclosing user range of each user id.
        window: start and end in ns after zero, or None for everything.
        uncertainty_ns: of the plugin's clock.
        spans: user ranges on devices as they are written by Kineto, which widens each by 1 ns on both sides.
        counts: fields of the counts that matter here.
        source: row of the table of known failures, where the case restates one.
    """

    name: str
    records: tuple[GenericTraceActivity, ...]
    expected: tuple[Kept | Gone, ...]
    known_ops: frozenset[int] | None = None
    user_parents: Mapping[int, int] = field(default_factory=dict)
    window: tuple[int, int] | None = None
    uncertainty_ns: int = 0
    spans: tuple[Span, ...] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    source: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.name}".strip()

    def records_at(self, zero_ns: int) -> list[GenericTraceActivity]:
        """Return the records with their zero at a Unix time."""
        return [
            dataclasses.replace(one, start_ns=zero_ns + one.start_ns, end_ns=zero_ns + one.end_ns)
            for one in self.records
        ]

    def window_at(self, zero_ns: int) -> tuple[int, int]:
        """Return the window with its zero at a Unix time."""
        start, end = self.window or (-1_000_000_000, 10_000_000_000)
        return zero_ns + start, zero_ns + end


def call(
    start: int,
    end: int,
    *,
    id: int = 0,
    op: int = 0,
    user: int = 0,
    thread: int = 0,
    flow: Flow | None = None,
    kind: ActivityType = ActivityType.PRIVATEUSE1_RUNTIME,
) -> GenericTraceActivity:
    """A call on the host."""
    return GenericTraceActivity(kind, "call", start, end, id, 0, 0, thread, op, user, flow)


def work(
    start: int,
    end: int,
    *,
    id: int = 0,
    op: int = 0,
    user: int = 0,
    device: int = 0,
    stream: int = 1,
    thread: int = 0,
    flow: Flow | None = None,
    kind: ActivityType = ActivityType.CONCURRENT_KERNEL,
) -> GenericTraceActivity:
    """Work on a device."""
    return GenericTraceActivity(kind, "work", start, end, id, device, stream, thread, op, user, flow)


def _ac2g(id: int, *, start: bool) -> Flow:
    return Flow(id, kLinkAsyncCpuGpu, start)


LAUNCHES = (
    Case(
        "a vendor number that equals another op's id links to nobody but its launch",
        (call(10, 20, id=23, op=41), work(30, 40, id=23, op=41)),
        (Kept(41, arrow=OWN), Kept(41, number=0, arrow=0)),
        known_ops=frozenset({23, 41}),
        counts={"work": 1, "linked": 1, "unlinked": 0},
        source="B01",
    ),
    Case(
        "number 0 joins nothing, and each record still has a number of its own",
        (call(10, 20), work(30, 40, stream=1), work(30, 40, stream=2)),
        (Kept(), Kept(), Kept()),
        counts={"work": 2, "unlinked": 2, "work_without_launch": 2, "launches": 0, "calls_without_work": 1},
        source="B03",
    ),
    Case(
        "a graph's one launch has an arrow to each of its 200 kernels",
        (call(0, 5, id=9, op=7), *(work(10 + 10 * i, 20 + 10 * i, id=9) for i in range(200))),
        (Kept(7, arrow=OWN), *(Kept(7, number=0, arrow=0) for _ in range(200))),
        counts={"work": 200, "linked": 200, "launches": 1, "inherited": 200},
        source="B05",
    ),
    Case(
        "work that seems to start before its launch keeps its arrow and its time, and is marked",
        (
            call(100 * US, 110 * US, id=1, op=7),
            work(105 * US, 120 * US, id=1, op=7),
            work(95 * US, 104 * US, id=1, op=7),
        ),
        (Kept(7, arrow=OWN), Kept(7, number=0, arrow=0), Kept(7, number=0, arrow=0, skewed=True)),
        counts={"skewed": 1},
        source="B07",
    ),
    Case(
        "what a clock's uncertainty explains is not marked",
        (call(100 * US, 110 * US, id=1, op=7), work(95 * US, 104 * US, id=1, op=7)),
        (Kept(7, arrow=OWN), Kept(7, number=0, arrow=0)),
        uncertainty_ns=5 * US,
        counts={"skewed": 0},
        source="B07",
    ),
    Case(
        "of two calls with one number the launch is the one before the work",
        (call(100, 110, id=77, op=7), work(115, 130, id=77, op=7), call(120, 122, id=77, op=7)),
        (Kept(7, arrow=OWN), Kept(7, number=0, arrow=0), Kept(7)),
        counts={"shared_numbers": 1, "launches": 1},
        source="B11",
    ),
    Case(
        "of two calls before the work the launch is the one in the work's op",
        (call(100, 101, id=77, op=8), call(105, 110, id=77, op=7), work(115, 130, id=77, op=7)),
        (Kept(8), Kept(7, arrow=OWN), Kept(7, number=1, arrow=1)),
        counts={"shared_numbers": 1},
        source="B11",
    ),
    Case(
        "of two calls in one op the launch is the one on the work's thread",
        (
            call(100, 101, id=77, op=7, thread=5),
            call(105, 110, id=77, op=7, thread=6),
            work(115, 130, id=77, op=7, thread=6),
        ),
        (Kept(7), Kept(7, arrow=OWN), Kept(7, number=1, arrow=1)),
        source="B11",
    ),
    Case(
        "of two calls that nothing tells apart the launch is the earlier one, in whatever order they come",
        (call(105, 110, id=77), call(100, 101, id=77), work(115, 130, id=77)),
        (Kept(), Kept(arrow=OWN), Kept(number=1, arrow=1)),
        source="B11",
    ),
    Case(
        "where every call is later than the work, the earliest is the launch",
        (call(105, 110, id=77), call(100, 104, id=77), work(90, 95, id=77)),
        (Kept(), Kept(arrow=OWN), Kept(number=1, arrow=1, skewed=True)),
        source="B11",
    ),
    Case(
        "two calls that share a number without work are just two calls",
        (call(100, 110, id=77), call(120, 122, id=77)),
        (Kept(), Kept()),
        counts={"shared_numbers": 0, "calls_without_work": 2},
    ),
    Case(
        "copies, sets and driver calls are joined like kernels and runtime calls",
        (
            call(0, 1, id=1, op=7, kind=ActivityType.PRIVATEUSE1_DRIVER),
            work(2, 3, id=1, op=7, kind=ActivityType.GPU_MEMCPY),
            call(4, 5, id=2, op=8, kind=ActivityType.CUDA_RUNTIME),
            work(6, 7, id=2, op=8, kind=ActivityType.GPU_MEMSET),
        ),
        (Kept(7, arrow=OWN), Kept(7, number=0, arrow=0), Kept(8, arrow=OWN), Kept(8, number=2, arrow=2)),
    ),
    Case(
        "a wait on a device shares its call's number and op and has no arrow",
        (call(0, 50, id=1, op=7), work(10, 40, id=1, kind=ActivityType.CUDA_SYNC)),
        (Kept(7), Kept(7, number=0)),
        counts={"work": 0, "launches": 0, "calls_without_work": 1, "inherited": 1},
    ),
    Case(
        "work whose launch is missing has no arrow, and work of one launch still shares a number",
        (work(10, 20, id=5, op=7), work(20, 30, id=5, op=7), work(30, 40, id=6, op=7), work(40, 50, op=7)),
        (Kept(7), Kept(7, number=0), Kept(7), Kept(7)),
        counts={"work_without_launch": 4, "linked": 4},
    ),
    Case(
        "wide and negative vendor numbers are matched whole",
        (
            call(0, 1, id=2**31 + 5),
            work(2, 3, id=2**31 + 5),
            call(4, 5, id=2**32 + 1),
            work(6, 7, id=2**32 + 1),
            call(8, 9, id=1),
            work(10, 11, id=1),
            call(12, 13, id=-5),
            work(14, 15, id=-5),
            work(16, 17, id=2**63 - 1),
        ),
        (
            Kept(arrow=OWN),
            Kept(number=0, arrow=0),
            Kept(arrow=OWN),
            Kept(number=2, arrow=2),
            Kept(arrow=OWN),
            Kept(number=4, arrow=4),
            Kept(arrow=OWN),
            Kept(number=6, arrow=6),
            Kept(),
        ),
    ),
    Case(
        "work may be handed over before its launch",
        (work(30, 40, id=3, op=7), call(10, 20, id=3, op=7)),
        (Kept(7, number=1, arrow=1), Kept(7, arrow=OWN)),
    ),
)

OPS = (
    Case(
        "a plugin that looks ops up with its own numbers has nothing linked, and the count says so",
        tuple(
            one
            for i in range(100)
            for one in (call(i, i, id=1000 + i, op=1000 + i), work(i, i, id=1000 + i, op=1000 + i))
        ),
        tuple(one for i in range(100) for one in (Kept(arrow=OWN), Kept(number=2 * i, arrow=2 * i))),
        known_ops=frozenset(range(1, 101)),
        counts={"work": 100, "linked": 0, "unlinked": 100, "unknown_ops": 200},
        source="B13",
    ),
    Case(
        "with correlation off nothing has an op, and calls keep numbers of their own",
        (call(10, 20, id=1), work(30, 40, id=1), call(50, 60, id=2)),
        (Kept(arrow=OWN), Kept(number=0, arrow=0), Kept()),
        known_ops=frozenset(),
        counts={"unlinked": 1, "unknown_ops": 0, "inherited": 0},
        source="B15",
    ),
    Case(
        "work without ids takes its launch's, and a launch without ids takes its work's",
        (
            call(0, 1, id=1, op=7, user=3),
            work(2, 3, id=1),
            call(4, 5, id=2),
            work(6, 7, id=2, op=8, user=4),
            work(8, 9, id=2),
        ),
        (
            Kept(7, 3, arrow=OWN),
            Kept(7, 3, number=0, arrow=0),
            Kept(8, 4, arrow=OWN),
            Kept(8, 4, number=2, arrow=2),
            Kept(8, 4, number=2, arrow=2),
        ),
        counts={"inherited": 3, "linked": 3},
    ),
    Case(
        "ids that are there are not overwritten",
        (call(0, 1, id=1, op=7, user=3), work(2, 3, id=1, op=8, user=4)),
        (Kept(7, 3, arrow=OWN), Kept(8, 4, number=0, arrow=0)),
        counts={"inherited": 0},
    ),
    Case(
        "an op that the host does not know gives way to one that it knows",
        (call(0, 1, id=1, op=7), work(2, 3, id=1, op=99)),
        (Kept(7, arrow=OWN), Kept(7, number=0, arrow=0)),
        known_ops=frozenset({7}),
        counts={"unknown_ops": 1, "inherited": 1, "linked": 1},
    ),
    Case(
        "wide op ids are kept whole",
        (call(0, 1, id=1, op=2**31 + 5), work(2, 3, id=1, op=2**31 + 5), call(4, 5, id=2, op=2**32 + 1)),
        (Kept(2**31 + 5, arrow=OWN), Kept(2**31 + 5, number=0, arrow=0), Kept(2**32 + 1)),
        known_ops=frozenset({2**31 + 5, 2**32 + 1}),
    ),
    Case(
        "user ranges are another space than ops, and the host is not asked about them",
        (call(0, 1, id=1, op=7, user=99), work(2, 3, id=1, op=7, user=99)),
        (Kept(7, 99, arrow=OWN), Kept(7, 99, number=0, arrow=0)),
        known_ops=frozenset({7}),
    ),
)

ARROWS = (
    Case(
        "a flow key that is used again later is another arrow",
        (
            call(0, 1, flow=_ac2g(5, start=True)),
            work(2, 3, flow=_ac2g(5, start=False)),
            call(10**9, 10**9 + 1, flow=_ac2g(5, start=True)),
            work(10**9 + 2, 10**9 + 3, flow=_ac2g(5, start=False)),
        ),
        (Kept(arrow=OWN), Kept(arrow=0), Kept(arrow=OWN), Kept(arrow=2)),
        counts={"duplicate_starts": 0, "loose_ends": 0},
        source="B09",
    ),
    Case(
        "launches with one flow key that overlap in time are told apart by their numbers",
        (
            call(0, 1, id=1, flow=_ac2g(5, start=True)),
            call(2, 3, id=2, flow=_ac2g(5, start=True)),
            work(4, 5, id=1, flow=_ac2g(5, start=False)),
            work(6, 7, id=2, flow=_ac2g(5, start=False)),
        ),
        (Kept(arrow=OWN), Kept(arrow=OWN), Kept(number=0, arrow=0), Kept(number=1, arrow=1)),
        counts={"duplicate_starts": 0},
        source="B09",
    ),
    Case(
        "of two starts of one arrow the earlier stays and the other is counted",
        (
            call(0, 1, flow=_ac2g(5, start=True)),
            call(2, 3, flow=_ac2g(5, start=True)),
            work(4, 5, flow=_ac2g(5, start=False)),
        ),
        (Kept(arrow=OWN), Kept(), Kept(arrow=0)),
        counts={"duplicate_starts": 1, "loose_ends": 0},
        source="B11",
    ),
    Case(
        "an arrow with one end is left out and counted",
        (call(0, 1, flow=_ac2g(5, start=True)), work(4, 5, flow=_ac2g(6, start=False))),
        (Kept(), Kept()),
        counts={"duplicate_starts": 0, "loose_ends": 2},
    ),
    Case(
        "an end before the only start of its key is skewed and belongs to it",
        (call(10, 11, flow=_ac2g(5, start=True)), work(4, 5, flow=_ac2g(5, start=False))),
        (Kept(arrow=OWN), Kept(arrow=0)),
    ),
    Case(
        "one key with two types is two arrows",
        (
            call(0, 1, flow=_ac2g(5, start=True)),
            call(0, 1, flow=Flow(5, kLinkFwdBwd, True)),
            work(4, 5, flow=_ac2g(5, start=False)),
            call(6, 7, flow=Flow(5, kLinkFwdBwd, False)),
        ),
        (Kept(arrow=OWN), Kept(arrow=OWN), Kept(arrow=0), Kept(arrow=1)),
    ),
    Case(
        "a record that takes part in the plugin's own arrow has no derived one",
        (
            call(0, 1, id=1, flow=Flow(5, kLinkFwdBwd, True)),
            work(2, 3, id=1),
            call(4, 5, flow=Flow(5, kLinkFwdBwd, False)),
            call(6, 7, id=2),
            work(8, 9, id=2),
            work(10, 11, id=2, flow=Flow(5, kLinkFwdBwd, False)),
        ),
        (
            Kept(arrow=OWN),
            Kept(number=0),
            Kept(arrow=0),
            Kept(arrow=OWN),
            Kept(number=3, arrow=3),
            Kept(number=3, arrow=0),
        ),
    ),
    Case(
        "a flow without a type is an arrow to a device",
        (call(0, 1, flow=Flow(5, 0, True)), work(2, 3, flow=Flow(5, 0, False))),
        (Kept(arrow=OWN), Kept(arrow=0)),
    ),
)

WINDOWS = (
    Case(
        "a record belongs to the window it started in, and keeps its true end",
        (call(99, 150, id=1), call(100, 101, id=2), call(200, 300, id=3), call(201, 202, id=4)),
        (Gone("before window"), Kept(), Kept(), Gone("after window")),
        window=(100, 200),
    ),
    Case(
        "work launched in warm-up leaves with its launch, also when it runs inside the window",
        (call(50, 60, id=1, op=7), work(120, 180, id=1, op=7), call(110, 111, id=2, op=8), work(130, 140, id=2, op=8)),
        (Gone("before window"), Gone("launched outside window"), Kept(8, arrow=OWN), Kept(8, number=2, arrow=2)),
        window=(100, 200),
        counts={"work": 1, "linked": 1},
        source="B23",
    ),
    Case(
        "work that was launched in the window and starts after it stays",
        (call(190, 195, id=1, op=7), work(250, 900, id=1, op=7), work(260, 900, op=7)),
        (Kept(7, arrow=OWN), Kept(7, number=0, arrow=0), Gone("after window")),
        window=(100, 200),
    ),
    Case(
        "work launched after the window leaves, also when a clock puts it inside",
        (call(201, 202, id=1), work(150, 160, id=1)),
        (Gone("after window"), Gone("launched outside window")),
        window=(100, 200),
    ),
    Case(
        "first kernels that are stamped before the window are counted, not lost in silence",
        (
            *(work(-1_000_000, -999_999, id=i + 1) for i in range(5)),
            *(work(110 + i, 111 + i, id=i + 10) for i in range(45)),
        ),
        (*(Gone("before window") for _ in range(5)), *(Kept() for _ in range(45))),
        window=(100, 200),
        source="B21",
    ),
    Case(
        "work of one missing launch shares a number also when its first record is left out",
        (work(50, 60, id=5), work(110, 120, id=5), work(130, 140, id=5)),
        (Gone("before window"), Kept(), Kept(number=1)),
        window=(100, 200),
    ),
    Case(
        "a launch that loses nothing but its late query is still the launch",
        (call(150, 160, id=1), work(170, 180, id=1), call(250, 251, id=1)),
        (Kept(arrow=OWN), Kept(number=0, arrow=0), Gone("after window")),
        window=(100, 200),
    ),
)


def _step(user: int, *intervals: tuple[int, int], device: int = 0, stream: int = 1) -> tuple[GenericTraceActivity, ...]:
    return tuple(work(start, end, user=user, device=device, stream=stream) for start, end in intervals)


def _kept_in(*users: int) -> tuple[Kept, ...]:
    return tuple(Kept(user=user) for user in users)


RANGES = (
    Case(
        "a range spans its kernels from the first start to the last end, and is no work itself",
        _step(3, (0, 10 * US), (15 * US, 25 * US), (30 * US, 40 * US)),
        _kept_in(3, 3, 3),
        spans=(Span(3, 0, 1, -1, 40 * US + 1),),
        counts={"work": 3},
        source="B63",
    ),
    Case(
        "ranges that touch contain their kernels and do not overlap once they are written",
        (*_step(3, (100, 110), (110, 120)), *_step(4, (120, 130), (130, 140))),
        _kept_in(3, 3, 4, 4),
        spans=(Span(3, 0, 1, 99, 120), Span(4, 0, 1, 120, 141)),
        source="B65",
    ),
    Case(
        "ranges one nanosecond apart do not overlap either",
        (*_step(3, (100, 120)), *_step(4, (121, 140))),
        _kept_in(3, 4),
        spans=(Span(3, 0, 1, 99, 120), Span(4, 0, 1, 120, 141)),
        source="B65",
    ),
    Case(
        "ranges two nanoseconds apart are written wider by one on each side",
        (*_step(3, (100, 120)), *_step(4, (122, 140))),
        _kept_in(3, 4),
        spans=(Span(3, 0, 1, 99, 121), Span(4, 0, 1, 121, 141)),
        source="B65",
    ),
    Case(
        "a range right between work of no range is written as it was measured",
        (*_step(0, (90, 100)), *_step(3, (100, 110), (110, 120)), *_step(0, (120, 130))),
        _kept_in(0, 3, 3, 0),
        spans=(Span(3, 0, 1, 100, 120),),
        source="B65",
    ),
    Case(
        "a range has one span on each device and stream that it used",
        (
            *_step(3, (0, 10)),
            *_step(3, (5, 30), stream=2),
            *_step(3, (7, 9), device=1),
            *_step(0, (50, 60)),
            work(0, 99, user=3, stream=4, kind=ActivityType.CUDA_SYNC),
        ),
        (*_kept_in(3, 3, 3, 0), Kept(user=3)),
        spans=(Span(3, 0, 1, -1, 11), Span(3, 0, 2, 4, 31), Span(3, 1, 1, 6, 10)),
    ),
    Case(
        "an enclosing range spans the work of the ranges inside it",
        (*_step(4, (0, 10)), *_step(5, (20, 30)), *_step(3, (40, 50))),
        _kept_in(4, 5, 3),
        user_parents={4: 3, 5: 3, 3: 2, 2: 0},
        spans=(
            Span(2, 0, 1, -1, 51),
            Span(3, 0, 1, -1, 51),
            Span(4, 0, 1, -1, 11),
            Span(5, 0, 1, 19, 31),
        ),
    ),
    Case(
        "ranges inside one another that end together stay nested where the next one begins",
        (*_step(4, (0, 10)), *_step(5, (10, 20)), *_step(6, (20, 30))),
        _kept_in(4, 5, 6),
        user_parents={4: 3, 5: 3},
        spans=(
            Span(3, 0, 1, -1, 20),
            Span(4, 0, 1, -1, 10),
            Span(5, 0, 1, 10, 20),
            Span(6, 0, 1, 20, 31),
        ),
    ),
    Case(
        "ranges of two threads that cross on a stream are put on two rows",
        (*_step(3, (0, 10)), *_step(4, (10, 20)), *_step(3, (20, 30)), *_step(4, (30, 40))),
        _kept_in(3, 4, 3, 4),
        spans=(Span(3, 0, 1, -1, 30), Span(4, 0, 1, 10, 41, row=2)),
    ),
    Case(
        "a third range that crosses both gets a third row",
        (*_step(3, (0, 10), (40, 50)), *_step(4, (10, 20), (60, 70)), *_step(5, (20, 30), (80, 90))),
        _kept_in(3, 3, 4, 4, 5, 5),
        spans=(Span(3, 0, 1, -1, 51), Span(4, 0, 1, 10, 71, row=2), Span(5, 0, 1, 20, 91, row=3)),
    ),
    Case(
        "work that took its range from its launch is spanned",
        (call(0, 1, id=1, user=3), work(10, 20, id=1)),
        (Kept(user=3, arrow=OWN), Kept(user=3, number=0, arrow=0)),
        spans=(Span(3, 0, 1, 9, 21),),
    ),
    Case(
        "a host call in a range is no work on a device",
        (call(0, 1, id=1, user=3),),
        (Kept(user=3),),
        spans=(),
    ),
)

CASES: tuple[Case, ...] = (*LAUNCHES, *OPS, *ARROWS, *WINDOWS, *RANGES)
