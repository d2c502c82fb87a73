"""A run of the kit as a recording, and the kit on a recording."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import Any, ClassVar

from devprof.errors import UsageError
from devprof.replay import Fault, Recorder, Recording, RecordingWorkload, ReplayProfiler, ReplayWorkload, load
from devprof.replay.workload import NOT_RECORDED, scope_of
from devprof.testing.conformance.bench import Settings
from devprof.testing.conformance.case import ProfilerConformance
from devprof.testing.conformance.report import Finding, State
from devprof.testing.conformance.subject import Subject
from devprof.testing.conformance.workload import Device

__all__ = ["KitRecorder", "ReplayConformance", "replayed", "settings_of"]


class KitRecorder:
    """Records a run of the kit, as a context manager.

    Attributes:
        device: what the kit's benches get in place of the plugin's own workload.
    """

    def __init__(self, subject: Subject, workload: Any, settings: Settings) -> None:
        """Get ready.

        Raises:
            UsageError: devprof left the plugin out, or there is no workload.
        """
        if subject.profiler is None or workload is None:
            raise UsageError("only a plugin that devprof takes in, and that has a workload, can be recorded")
        self._recorder = Recorder(subject.profiler.profiler)
        self._workload = RecordingWorkload(workload, self._recorder)
        self._settings = settings
        self.device = Device(self._workload)

    def __enter__(self) -> KitRecorder:
        self._recorder.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._recorder.__exit__(*error)

    def recording(self, findings: Iterable[Finding], *, keep_texts: bool = False) -> Recording:
        """Return what was recorded.

        Args:
            findings: what came of the checks: those that were skipped are skipped in the replay.
            keep_texts: keep paths, host and user names in texts.
        """
        ran = sorted(
            scope_of(one.check.number, one.host)
            for one in findings
            if one.state is not State.SKIPPED and one.check.number not in NOT_RECORDED
        )
        facts = {"workload": self._workload.facts | {"ran": ran}, "settings": dataclasses.asdict(self._settings)}
        return self._recorder.recording(keep_texts=keep_texts, **facts)


def settings_of(recording: Recording) -> Settings:
    """Return how hard the kit tried when it was recorded; a replay has to do the same.

    Raises:
        UsageError: it was no run of the kit, or one of another version.
    """
    if not recording.is_conformance:
        raise UsageError(
            "the recording is of a program, and the kit needs one of itself: record it with "
            "`devprof conform PLUGIN --record FILE`, where the device is"
        )
    try:
        return Settings(**recording.settings)
    except TypeError as error:
        raise UsageError(
            f"the recording was made with another version of the kit ({error}); record it again"
        ) from error


def replayed(
    recording: Recording | str | os.PathLike[str], faults: str | Iterable[str | Fault] = ()
) -> tuple[ReplayProfiler, ReplayWorkload]:
    """Return the plugin and the workload of a recorded run of the kit.

    Args:
        recording: the recording, or its file.
        faults: what to inject: see `devprof.replay.FAULTS`.
    """
    profiler = ReplayProfiler(recording, faults=faults)
    return profiler, ReplayWorkload(profiler.player)


class ReplayConformance(ProfilerConformance):
    """The kit's tests on a recorded run of the kit: what was right where the device is, is checked where it is not.

    Attributes:
        recording: the file, from ``devprof conform PLUGIN --record FILE``.

    Example:
        class TestRecordedNpu(ReplayConformance):
            recording = Path(__file__).with_name("npu.devrec")
    """

    recording: ClassVar[str | os.PathLike[str] | Recording | None] = None

    @classmethod
    def setup_class(cls) -> None:
        """Load the recording; its settings are those of the tests."""
        if cls.recording is None:
            raise UsageError(f"{cls.__name__}.recording is not set: name the recording's file")
        found = cls.recording if isinstance(cls.recording, Recording) else load(cls.recording)
        profiler, workload = replayed(found)
        cls.plugin, cls.workload, cls.settings = profiler, workload, settings_of(found)
        super().setup_class()
