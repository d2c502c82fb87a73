"""The loss ledger: what became of every record, per plugin.

    produced = emitted + dropped + rejected

`dropped` and `rejected` carry reasons. Notes are counts within `emitted` (unlinked, cleaned names). What a vendor cannot
count is kept apart, as text: unknown is not zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from devprof.capture.verdict import SetAside
from devprof.model.reasons import DELIVERED_TWICE, LET_GO, NOT_OF_THE_WINDOW, lost_of

__all__ = ["UNKNOWN_OP", "HostLedger", "Part", "PluginLedger", "SessionReport"]

_ON_PURPOSE = (*NOT_OF_THE_WINDOW, "function calls, devprof's own", "ranges that were being entered at the stop")

UNKNOWN_OP = "op id unknown to the host"
"""Note for records whose op id the host did not give in the session."""


@dataclass(slots=True)
class Part:
    """How much of a plugin's records has reached a trace.

    Attributes:
        records: all of them.
        device_work: kernels, copies and sets among them.
        linked: those of these that belong to an op.
    """

    records: int = 0
    device_work: int = 0
    linked: int = 0


@dataclass(slots=True)
class PluginLedger:
    """Account of one plugin in one session.

    Attributes:
        plugin: name of the plugin.
        emitted: records that went into the trace.
        dropped: records that were lost or left out, by reason.
        rejected: records that no trace can hold, by reason.
        notes: counts within `emitted`, by what was noticed.
        lost_unknown: reasons for which an unknown number of records was lost.
        errors: what the plugin itself said went wrong.
        doubts: what is odd about its records: kinds, numbers, times.
        failures: how it misbehaved; a `PluginWarning` was issued for the first.
        set_aside: the verdict on that: where, when, and until when it is left out; None: it took part to the end.
        device_work: kernels, copies and sets within `emitted`.
        linked: those of them that belong to an op.
        clock: the fit of the plugin's clock, as facts; empty for host time.
    """

    plugin: str
    emitted: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    lost_unknown: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    set_aside: SetAside | None = None
    device_work: int = 0
    linked: int = 0
    clock: dict[str, object] = field(default_factory=dict)

    @property
    def produced(self) -> int:
        """Every record that is known to have existed."""
        return self.emitted + self.dropped.total() + self.rejected.total()

    @property
    def lost(self) -> int:
        """Records that should be in the trace and are not."""
        return self.lost_by_reason.total()

    @property
    def lost_by_reason(self) -> Counter[str]:
        """The same by reason. A record that came twice is there once."""
        return Counter(lost_of(self.dropped + self.rejected))

    @property
    def none_linked(self) -> bool:
        """True where there is device work and none of it belongs to an op."""
        return self.device_work > 0 and self.linked == 0

    @property
    def clock_doubts(self) -> list[str]:
        """Why the plugin's clock may be known badly, one sentence each."""
        doubts = self.clock.get("warnings", ())
        return [str(doubt) for doubt in doubts] if isinstance(doubts, list | tuple) else []

    @property
    def clean(self) -> bool:
        """True where nothing was lost, nothing came twice, and nothing went wrong."""
        if self.rejected[DELIVERED_TWICE]:
            return False
        return not (self.lost or self.lost_unknown or self.errors or self.failures or self.doubts or self.clock_doubts)

    def row_label(self, label: str) -> str:
        """Return the label of one of its rows in a trace, with the verdict where there is one."""
        return label if self.set_aside is None else f"{label}; {self.set_aside.mark}" if label else self.set_aside.mark

    def copied(self) -> PluginLedger:
        """Return the account as it is now; what happens later is not in it."""
        lists = {key: list(getattr(self, key)) for key in ("lost_unknown", "errors", "doubts", "failures")}
        counts = {key: Counter(getattr(self, key)) for key in ("dropped", "rejected", "notes")}
        return replace(self, **lists, **counts, clock=dict(self.clock))  # type: ignore[arg-type]  # each its own type

    def give_up(self, reason: str, produced: int, part: Part | None = None) -> None:
        """Close the account where not all records reached the trace: what has no other reason is dropped for this one.

        Args:
            reason: why they did not.
            produced: how many records there were.
            part: what is in the trace; None: nothing.
        """
        part = part or Part()
        self.emitted, self.device_work, self.linked = part.records, part.device_work, part.linked
        if lost := produced - self.produced:
            self.dropped[reason] += lost

    def leave_out(self, reason: str, count: int) -> None:
        """Count records as dropped that the host left out of the trace; which ones is not known, so work is only bounded."""
        if count:
            self.dropped[reason] += count
            self.emitted -= count
            self.device_work = min(self.device_work, self.emitted)
            self.linked = min(self.linked, self.device_work)

    def as_dict(self) -> dict[str, object]:
        """Return the account as JSON values, as it stands in the trace's metadata."""
        return {
            "produced": self.produced,
            "emitted": self.emitted,
            "dropped": dict(self.dropped),
            "rejected": dict(self.rejected),
            "lost_unknown": list(self.lost_unknown),
            "device_work": self.device_work,
            "linked": self.linked,
            "notes": dict(self.notes),
            "errors": list(self.errors),
            "failures": list(self.failures),
            "set_aside": None if self.set_aside is None else self.set_aside.as_dict(),
            "clock": dict(self.clock),
            "doubts": list(self.doubts),
        }

    def lines(self) -> Iterable[str]:
        """Yield the account as short lines for a person."""
        yield (
            f"{self.plugin}: produced {self.produced} = emitted {self.emitted} + dropped {self.dropped.total()} "
            f"+ rejected {self.rejected.total()}; {self.linked} of {self.device_work} device records linked"
        )
        for word, reasons in (("dropped", self.dropped), ("rejected", self.rejected), ("note", self.notes)):
            yield from (f"  {word}, {reason}: {count}" for reason, count in sorted(reasons.items()))
        yield from (f"  lost, number unknown: {reason}" for reason in self.lost_unknown)
        yield from (f"  doubt: {doubt}" for doubt in self.doubts)
        yield from (f"  clock: {doubt}" for doubt in self.clock_doubts)
        yield from (f"  error: {error}" for error in (*self.errors, *self.failures))
        if self.set_aside is not None:
            yield f"  {self.set_aside}"


@dataclass(slots=True)
class HostLedger:
    """Account of the host's own events: ranges, memory reports, function calls.

    Attributes:
        emitted: events that went into the trace.
        dropped: events that were lost or left out, by reason.
    """

    emitted: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def produced(self) -> int:
        """Every event that is known to have happened."""
        return self.emitted + self.dropped.total()

    @property
    def lost(self) -> dict[str, int]:
        """Events that should be in the trace and are not, by reason."""
        return {reason: n for reason, n in self.dropped.items() if n and reason not in _ON_PURPOSE}

    def as_dict(self) -> dict[str, object]:
        """Return the account as JSON values."""
        return {"produced": self.produced, "emitted": self.emitted, "dropped": dict(self.dropped)}

    def lines(self) -> Iterable[str]:
        """Yield the account as short lines, where there is anything to say."""
        if self.dropped[LET_GO] or self.lost:
            yield f"host: produced {self.produced} = emitted {self.emitted} + dropped {self.dropped.total()}"
            yield from (f"  dropped, {reason}: {count}" for reason, count in sorted(self.dropped.items()) if count)


@dataclass(slots=True)
class SessionReport:
    """What devprof did in one session: one ledger per plugin, and the window.

    Attributes:
        host: ``"torch"`` or ``"python"``.
        ledgers: accounts by plugin name.
        host_events: account of the host's own events; None where torch recorded them.
        start_ns: start of the capture window, Unix ns.
        end_ns: end of the window as the user saw it, Unix ns.
        host_ops: True where the host recorded ops, so that device work can be linked to them.
        complete: False where the session was cancelled or the host never asked for its records.
        notes: what concerns the session as a whole.
        timings_ns: how long devprof's own stages took, by stage, nanoseconds.
        moved_host_calls: host calls that stuck out of their op by less than the host's own clock may be off, and were moved
            into it by the host.
    """

    host: str
    ledgers: dict[str, PluginLedger] = field(default_factory=dict)
    host_events: HostLedger | None = None
    start_ns: int = 0
    end_ns: int = 0
    host_ops: bool = True
    complete: bool = False
    notes: list[str] = field(default_factory=list)
    timings_ns: dict[str, int] = field(default_factory=dict)
    moved_host_calls: int = 0

    @property
    def clean(self) -> bool:
        """True where the session is complete, nothing was lost, and device work is linked."""
        return self.complete and not self.complaints() and all(ledger.clean for ledger in self.ledgers.values())

    @property
    def has_verdict(self) -> bool:
        """True where a plugin was set aside, here or in an earlier session."""
        return any(ledger.set_aside is not None for ledger in self.ledgers.values())

    def complaints(self, *, warned: bool = True) -> list[str]:
        """Return a sentence for everything that a user should know; empty where all is well.

        Args:
            warned: also what a `PluginWarning` has already said.
        """
        said = [text for ledger in self.ledgers.values() for text in ledger.failures] if warned else []
        of_plugins = (text for ledger in self.ledgers.values() for text in self._complaints(ledger))
        return [*self.notes, *self._of_host(), *of_plugins, *said]

    def _of_host(self) -> Iterable[str]:
        lost = {} if self.host_events is None else self.host_events.lost
        if lost and self.host_events is not None:
            listed = _listed(lost)
            yield f"{sum(lost.values())} of {self.host_events.produced} events of the host were lost ({listed})"

    def _complaints(self, ledger: PluginLedger) -> Iterable[str]:
        if ledger.lost:
            listed = _listed(ledger.lost_by_reason)
            yield f"{ledger.plugin}: {ledger.lost} of {ledger.produced} records were lost ({listed})"
        if twice := ledger.rejected[DELIVERED_TWICE]:
            yield f"{ledger.plugin}: {twice} of {ledger.produced} records had been delivered already; each is in the trace once"
        for reason in ledger.lost_unknown:
            yield f"{ledger.plugin}: an unknown number of records was lost ({reason})"
        if ledger.none_linked and self.host_ops:
            yield (
                f"{ledger.plugin}: 0 of {ledger.device_work} device records linked to an op; most likely the records carry "
                "another id than the op id that was current at the launch (devprof.correlation.current_op_id())"
            )
        elif (strangers := ledger.notes[UNKNOWN_OP]) and self.host_ops:
            yield (
                f"{ledger.plugin}: {strangers} records carry an op id that the host never gave in this session; the others may "
                "be linked by chance. `linked` is the op id that was current at the launch, `id` the plugin's own number"
            )
        yield from (f"{ledger.plugin}: {doubt}" for doubt in ledger.doubts)
        yield from (f"{ledger.plugin}: times may be wrong: {doubt}" for doubt in ledger.clock_doubts)
        yield from (f"{ledger.plugin}: {error}" for error in ledger.errors)

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {
            "host": self.host,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "complete": self.complete,
            "notes": list(self.notes),
            **({} if self.host_events is None else {"host_events": self.host_events.as_dict()}),
            "plugins": {name: ledger.as_dict() for name, ledger in self.ledgers.items()},
        }

    def __str__(self) -> str:
        lines = [line for ledger in self.ledgers.values() for line in ledger.lines()]
        lines += [] if self.host_events is None else self.host_events.lines()
        return "\n".join([*lines, *self.notes]) or "no devprof plugin took part"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()) if count)
