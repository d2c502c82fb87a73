"""One capture: which plugins take part, what they delivered, what was lost.

Job: drive plugin sessions through their states on bounded threads, collect their records, keep the loss ledger.
In: registered profilers, a window, a host that says when to start and stop.
Out: per plugin a `LaneResult` and a `PluginLedger`; the report of every profile.
Never: converts clocks, links records, or knows torch, but for the folder of its files, which hold no line of the user's.
"""

from devprof.capture.checks import check_batch
from devprof.capture.collector import Collector
from devprof.capture.exclusive import RECORDING, Exclusive, Holder
from devprof.capture.interrupts import HeldInterrupt
from devprof.capture.lane import Lane, LaneResult
from devprof.capture.ledger import UNKNOWN_OP, PluginLedger, SessionReport
from devprof.capture.notices import tell, users_place
from devprof.capture.phases import Outcome, PhaseRunner, started
from devprof.capture.quarantine import quarantined
from devprof.capture.reports import attach, last_report, report_of, warn_if_lossy
from devprof.capture.session import CaptureSession
from devprof.capture.states import SessionState, advance

__all__ = [
    "RECORDING",
    "UNKNOWN_OP",
    "CaptureSession",
    "Collector",
    "Exclusive",
    "HeldInterrupt",
    "Holder",
    "Lane",
    "LaneResult",
    "Outcome",
    "PhaseRunner",
    "PluginLedger",
    "SessionReport",
    "SessionState",
    "advance",
    "attach",
    "check_batch",
    "last_report",
    "quarantined",
    "report_of",
    "started",
    "tell",
    "users_place",
    "warn_if_lossy",
]
