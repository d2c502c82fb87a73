"""`RecordedEvents`: the events of a profile, with the exports that torch's list of events has."""

from __future__ import annotations

from devprof import export
from devprof.analysis import EventList

__all__ = ["RecordedEvents"]


class RecordedEvents(EventList):
    """What `profile.events` answers."""

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace of these events for chrome://tracing and Perfetto; a name that ends in ``.gz`` is compressed."""
        export.chrome_trace(self.trace, path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write each stack on a line with its time, for flame graphs.

        Args:
            path: the file.
            metric: which time, such as ``"self_cpu_time_total"``.

        Raises:
            UsageError: no stacks are recorded, or the metric is unknown.
        """
        export.stacks(self.trace, path, metric)
