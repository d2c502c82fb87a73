"""Rules on ids, owners and arrows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from devprof.link import nest
from devprof.link.columns import codes_of_rows
from devprof.model import ActivityType, Role, kLinkAsyncCpuGpu, kLinkFwdBwd
from devprof.rules.finding import Rule, Severity, Violation, where
from devprof.rules.times import work_of
from devprof.store import ROLES, ItemKind, Trace

__all__ = ["RULES"]

_GREATEST_ID = 2**63 - 1
_Longs = npt.NDArray[np.int64]
_LAUNCH = ROLES.index(Role.LAUNCH)


def _with_op_id(trace: Trace) -> npt.NDArray[np.int64]:
    return trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)


def _op_ids_once(trace: Trace) -> Iterator[Violation]:
    events = _with_op_id(trace)
    yield from where(
        _repeated(trace, events[trace.id[events] != 0]),
        lambda n, at: (
            f"{n} ops and ranges have the id of an earlier one; the first is {trace.name_of(at)!r} with {trace.id[at]}"
        ),
    )


def _launch_numbers_once(trace: Trace) -> Iterator[Violation]:
    events = np.flatnonzero((trace.role == _LAUNCH) & (trace.id != 0))
    numbered_work = np.unique(trace.id[work_of(trace)])
    events = events[np.isin(trace.id[events], numbered_work)]  # a number that no work has tells nobody apart
    # a call within another of its number and thread, such as one of the driver, is part of the same launch
    launch = codes_of_rows(trace.id[events], trace.row[events].astype(np.int64))
    inner = nest(trace.start_ns[events], trace.end_ns[events], launch, entered_in_order=False) >= 0
    events = events[~inner]
    yield from where(
        _repeated(trace, events),
        lambda n, at: (
            f"{n} launches share the number of an earlier one, and device work has it too: which of them launched "
            f"it? The first is {trace.name_of(at)!r} with {trace.id[at]}"
        ),
    )


def _repeated(trace: Trace, events: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(trace), dtype=np.bool_)
    order = events[np.argsort(trace.id[events], kind="stable")]
    mask[order[1:][trace.id[order[1:]] == trace.id[order[:-1]]]] = True
    return mask


def _ids_in_range(trace: Trace) -> Iterator[Violation]:
    bad = (trace.id < 0) | (trace.linked < 0) | (trace.linked_user < 0) | (trace.flow_id < 0)
    yield from where(bad, lambda n, at: f"{n} events have a negative id; the first is {trace.name_of(at)!r}")


def _owners_exist(trace: Trace) -> Iterator[Violation]:
    ops = np.unique(trace.id[_with_op_id(trace)])
    if not len(ops):
        return  # a capture without host ops has none to link to
    yield from where(
        (trace.linked != 0) & ~np.isin(trace.linked, ops) & (work_of(trace) | (trace.role == _LAUNCH)),
        lambda n, at: (
            f"{n} records are linked to an op that is not in the trace; the first is {trace.name_of(at)!r}, "
            f"linked to {trace.linked[at]}"
        ),
    )


def _work_is_owned(trace: Trace) -> Iterator[Violation]:
    if not len(_with_op_id(trace)):
        return
    loose = work_of(trace) & (trace.linked == 0)
    total = int(np.count_nonzero(work_of(trace)))
    yield from where(
        loose,
        lambda n, at: (
            f"{n} of {total} device records belong to no op, so no op's device time holds them; the first is "
            f"{trace.name_of(at)!r}"
        ),
    )


def _work_is_launched(trace: Trace) -> Iterator[Violation]:
    total, orphan = _without_launch(trace)
    if np.count_nonzero(orphan) < total:
        yield from where(
            orphan,
            lambda n, at: (
                f"{n} of {total} device records have no launch with their number; the first is {trace.name_of(at)!r}"
            ),
        )


def _some_work_is_launched(trace: Trace) -> Iterator[Violation]:
    total, orphan = _without_launch(trace)
    if np.count_nonzero(orphan) == total:
        yield from where(
            orphan,
            lambda n, at: (
                f"none of {n} device records has a launch with its number, though calls were recorded: there are no arrows; "
                f"the first is {trace.name_of(at)!r}"
            ),
        )


def _without_launch(trace: Trace) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return how much device work there is, and which of it has no launch: none of it, where no calls were recorded."""
    work, launches = work_of(trace), trace.role == _LAUNCH
    orphan = work & launches.any() & ~np.isin(trace.id, np.unique(trace.id[launches]))
    return int(np.count_nonzero(work)), orphan


def _launch_and_work_agree(trace: Trace) -> Iterator[Violation]:
    """Look at numbers that one launch alone has; what several share is another rule's."""
    ops = np.unique(trace.id[_with_op_id(trace)])
    in_known_op = (trace.linked != 0) & np.isin(trace.linked, ops)
    launches = np.flatnonzero((trace.role == _LAUNCH) & (trace.id != 0))
    numbers, first, times = np.unique(trace.id[launches], return_index=True, return_counts=True)
    launches, numbers = launches[first[times == 1]], numbers[times == 1]
    work = np.flatnonzero(work_of(trace) & in_known_op & np.isin(trace.id, numbers))
    its_launch = launches[np.searchsorted(numbers, trace.id[work])]
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[work[in_known_op[its_launch] & (trace.linked[its_launch] != trace.linked[work])]] = True
    yield from where(
        mask,
        lambda n, at: (
            f"{n} device records belong to another op than the call with their number; the first is {trace.name_of(at)!r}"
        ),
    )


def _arrows_have_one_start(trace: Trace) -> Iterator[Violation]:
    ends, which, starts, arrivals = _arrows(trace)
    for bad, words in (
        ((starts == 0)[which] & ~_on_calls(trace, ends), "arrow ends have no start"),
        ((starts > 1)[which], "arrow ends are of an arrow with several starts"),
        ((arrivals == 0)[which], "arrow starts lead nowhere"),
    ):
        mask = np.zeros(len(trace), dtype=np.bool_)
        mask[ends[bad]] = True
        yield from where(mask, lambda n, at, words=words: f"{n} {words}; the first is at {trace.name_of(at)!r}")  # type: ignore[misc]


def _arrows_to_calls(trace: Trace) -> Iterator[Violation]:
    ends, which, starts, _ = _arrows(trace)
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[ends[(starts == 0)[which] & _on_calls(trace, ends)]] = True
    yield from where(
        mask,
        lambda n, at: (
            f"{n} calls have the end of an arrow that begins nowhere, as Kineto writes it for calls that start no work; "
            f"the first is {trace.name_of(at)!r}"
        ),
    )


def _arrows(trace: Trace) -> tuple[_Longs, _Longs, _Longs, _Longs]:
    """Return the events with an end of an arrow, the arrow of each; and how often each arrow starts, and arrives."""
    ends = np.flatnonzero((trace.flow_id != 0) & (trace.flow_type != 0))
    keys = trace.flow_id[ends] * 4 + trace.flow_type[ends]
    distinct, which = np.unique(keys, return_inverse=True)
    begins = trace.flow_start[ends] == 1
    starts, arrivals = (np.bincount(which[side], minlength=len(distinct)) for side in (begins, ~begins))
    return ends, which, starts, arrivals


def _on_calls(trace: Trace, ends: _Longs) -> npt.NDArray[np.bool_]:
    """Return which ends of launch arrows stand on calls of the host."""
    on_calls: npt.NDArray[np.bool_] = trace.flow_type[ends] == kLinkAsyncCpuGpu
    on_calls &= (trace.role[ends] == _LAUNCH) & ~trace.on_device[ends]
    return on_calls


def _launch_arrows_start_on_the_host(trace: Trace) -> Iterator[Violation]:
    yield from where(
        (trace.flow_type == kLinkAsyncCpuGpu) & (trace.flow_start == 1) & (trace.flow_id != 0) & trace.on_device,
        lambda n, at: f"{n} launch arrows start on a device; the first at {trace.name_of(at)!r}",
    )


def _backward_after_forward(trace: Trace) -> Iterator[Violation]:
    ends = np.flatnonzero((trace.flow_type == kLinkFwdBwd) & (trace.flow_id != 0))
    order = ends[np.lexsort((1 - trace.flow_start[ends], trace.flow_id[ends]))]
    pairs = np.flatnonzero(trace.flow_id[order[1:]] == trace.flow_id[order[:-1]])
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[order[1:][pairs][trace.start_ns[order[1:][pairs]] < trace.start_ns[order[:-1][pairs]]]] = True
    yield from where(
        mask, lambda n, at: f"{n} backward ops start before their forward op; the first is {trace.name_of(at)!r}"
    )


def _sequence_numbers_once(trace: Trace) -> Iterator[Violation]:
    """Look at backward ops, the outermost of each number; a forward op shares its number with the ops that it calls."""
    numbers, threads = trace.items.get("Sequence number"), trace.items.get("Fwd thread id")
    if numbers is None or threads is None or numbers.kind is not ItemKind.INT or threads.kind is not ItemKind.INT:
        return
    number, thread = numbers.dense(len(trace), -1), threads.dense(len(trace), 0)
    backward = (thread != 0) & (number >= 0)
    parent = trace.parent
    inner = backward & (parent >= 0) & backward[parent] & (number[parent] == number)
    events = np.flatnonzero(backward & ~inner)
    order = events[np.lexsort((events, number[events], thread[events]))]
    again = (number[order[1:]] == number[order[:-1]]) & (thread[order[1:]] == thread[order[:-1]])
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[order[1:][again]] = True
    yield from where(
        mask,
        lambda n, at: (
            f"{n} backward ops have the sequence number of an earlier one, as when a graph is run backward twice: only "
            f"the first gets an arrow; the first is {trace.name_of(at)!r} with {number[at]}"
        ),
    )


RULES = (
    Rule("ids.ops", Severity.ERROR, "Every op and range has an id of its own.", _op_ids_once),
    Rule("ids.launches", Severity.WARNING, "No two launches share a number that work has.", _launch_numbers_once),
    Rule("ids.range", Severity.ERROR, "No id is negative.", _ids_in_range),
    Rule("links.owners", Severity.WARNING, "A record's op is in the trace.", _owners_exist),
    Rule("links.owned", Severity.WARNING, "Device work belongs to an op.", _work_is_owned),
    Rule("links.launched", Severity.INFO, "Device work has a launch.", _work_is_launched),
    Rule("links.calls", Severity.WARNING, "Where calls are recorded, some launch work.", _some_work_is_launched),
    Rule("links.agree", Severity.WARNING, "Device work and its launch belong to one op.", _launch_and_work_agree),
    Rule("flows.paired", Severity.WARNING, "An arrow has one start, and an end.", _arrows_have_one_start),
    Rule("flows.calls", Severity.INFO, "An arrow that ends at a call begins somewhere.", _arrows_to_calls),
    Rule("flows.host", Severity.ERROR, "A launch arrow starts on the host.", _launch_arrows_start_on_the_host),
    Rule("flows.backward", Severity.WARNING, "Backward follows forward.", _backward_after_forward),
    Rule("links.sequence", Severity.INFO, "A sequence number leads back once.", _sequence_numbers_once),
)
