"""What a session was asked for, and what it may not do beside."""

from __future__ import annotations

from collections import Counter

from devprof.model import ActivityType
from devprof.testing.conformance.bench import Bench, Capture
from devprof.testing.conformance.table import DIRECT, Undecided, check, expect
from devprof.testing.conformance.watching import Watched

__all__: list[str] = []


def _kinds(bench: Bench) -> dict[ActivityType, str]:
    """Return the kinds that the workload can bring about, with the method that does."""
    methods = {
        ActivityType.CONCURRENT_KERNEL: "launch",
        ActivityType.PRIVATEUSE1_RUNTIME: "launch",
        ActivityType.GPU_MEMCPY: "copy",
        ActivityType.GPU_MEMSET: "set",
    }
    return {kind: method for kind, method in methods.items() if bench.claims(kind) and bench.device.has(method)}


def _alone(bench: Bench, kind: ActivityType) -> Watched:
    """Record everything that the workload can do, in a session that is asked for one kind."""
    session = bench.direct({kind})
    session.start()
    session.launch(1)
    for method in ("copy", "set"):
        if bench.device.has(method):
            session.push(7)
            bench.device.call(method, 64)
            session.pop()
    return session.finish()


@check(
    "C201",
    hosts=DIRECT,
    needs=("workload",),
    cause="`configure` does not look at `activity_types`. devprof rejects what was not asked for and counts it as lost.",
)
def records_only_what_was_asked_for(bench: Bench) -> None:
    """A session delivers only the kinds that it was asked for.

    For each kind that the workload can bring about, records everything in a session that is asked for that kind alone.
    """
    for kind in _kinds(bench):
        other = Counter(one.activity_type.name for one in _alone(bench, kind).records() if one.activity_type != kind)
        expect(not other, expected=f"only {kind.name}", found=f"also {dict(other)}")


@check(
    "C202",
    hosts=DIRECT,
    needs=("workload",),
    cause="The kind is claimed in `available_activities()` but depends on another one being on, or is never recorded.",
)
def records_each_kind_alone(bench: Bench) -> None:
    """Every kind that a plugin claims comes when it is asked for alone.

    For each kind that the workload can bring about, records everything in a session that is asked for that kind alone, and
    expects at least one record of it.
    """
    counts = {kind.name: len(_alone(bench, kind).records(kind)) for kind in _kinds(bench)}
    missing = [name for name, count in counts.items() if not count]
    if ActivityType.CONCURRENT_KERNEL.name in missing and not bench.work(1).seen.kernels:
        raise Undecided("C401", "no kernel is delivered at all")
    expect(not missing, expected="records of every kind", found=f"none of {', '.join(missing)}")


@check(
    "C203",
    needs=("workload", "kernels"),
    cause="The plugin keeps only records with an op id. Where the host records no ops there are none, and the kernels "
    "are all that the user asked for.",
)
def works_without_the_hosts_side(bench: Bench) -> None:
    """A profile of the device alone has its kernels.

    Profiles two kernels with the plugin as the only activity, so that no op has an id.
    """

    def body(capture: Capture) -> None:
        bench.launch(2)
        bench.device.synchronize()

    bench.work(2).delivered(2)
    capture = bench.session(body, cpu=False)
    found = len(capture.seen.kernels)
    expect(found == 2, expected="2 kernels", found=found)


@check(
    "C204",
    needs=("workload", "kernels"),
    cause="`toggle_collection_dynamic` is there and does nothing, or the wrong way round. A session that cannot pause "
    "has no such method.",
)
def pauses_and_goes_on(bench: Bench) -> None:
    """What is launched while collection is paused is not recorded, and what comes after is.

    Launches two kernels, pauses, launches three, resumes, launches one. Skipped where sessions cannot pause.
    """

    def body(capture: Capture) -> None:
        for n, then in ((2, False), (3, True), (1, None)):
            bench.launch(n)
            bench.device.synchronize()
            if then is not None:
                capture.prof.toggle_collection_dynamic(then, [capture.name])

    capture = bench.session(body)
    bench.need("a session with toggle_collection_dynamic()", "toggle_collection_dynamic" in capture.seen.calls)
    bench.work(3).delivered(3)
    found = len(capture.seen.kernels)
    expect(found == 3, expected="the 3 kernels outside of the pause", found=f"{found} kernels")
