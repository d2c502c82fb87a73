"""One capture: let the device record, wait for it, hand the records over."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from devprof.contract import ActivityLogger, ClockDomain, GetLinkedActivity, IActivityProfilerSession
from devprof.model import ActivityType, BatchBuilder, DeviceInfo, GenericTraceActivity, ResourceInfo

from my_npu import device

CLOCK = "my-npu"

KINDS = {
    ActivityType.PRIVATEUSE1_RUNTIME: "call",
    ActivityType.CONCURRENT_KERNEL: "kernel",
    ActivityType.GPU_MEMCPY: "copy",
}
"""The device's kind for each of devprof's; what your device cannot record does not belong here."""

_TYPES = {kind: activity_type for activity_type, kind in KINDS.items()}


class Session(IActivityProfilerSession):
    """devprof calls these methods in the order in which they stand here."""

    def __init__(self, activity_types: Collection[ActivityType]) -> None:
        """Prepare a capture of these kinds; it may never be started."""
        self._kinds = frozenset(KINDS[activity_type] for activity_type in activity_types)
        self._is_recording = False

    def clock_domain(self) -> ClockDomain:
        """Say that work is stamped in ticks; devprof converts them. Leave it out where your SDK gives Unix ns."""
        return ClockDomain(CLOCK, device.TICKS_PER_SECOND)

    def sample_clock(self) -> int:
        """Read the device's clock. Be quick: devprof puts the host's clock beside it."""
        return device.now_ticks()

    def start(self) -> None:
        """Record from now on, without what is left of an earlier capture."""
        device.take()
        device.enable(self._kinds)
        self._is_recording = True

    def toggle_collection_dynamic(self, enabled: bool) -> None:
        """Pause, or go on."""
        device.enable(self._kinds if enabled else frozenset())

    def stop(self) -> None:
        """Stop recording, then wait for the work in flight. It may come twice, or without a start."""
        if self._is_recording:
            self._is_recording = False
            device.disable()
            device.synchronize()

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None:
        """Hand over everything: calls in Unix ns, work in ticks, and how much was lost."""
        records, n_lost = device.take()
        calls, work = BatchBuilder(), BatchBuilder(clock=CLOCK)
        for record in records:
            (calls if record.kind == "call" else work).append(_activity(record))
        logger.handle_activities(calls.build())
        logger.handle_activities(work.build())
        if n_lost:
            logger.handle_dropped(n_lost, "the device had no room")

    def get_device_infos(self) -> Sequence[DeviceInfo]:
        """Name the devices."""
        names = [f"my-npu {index}" for index in range(device.DEVICES)]
        return [DeviceInfo(index, name) for index, name in enumerate(names)]

    def get_resource_infos(self) -> Sequence[ResourceInfo]:
        """Name the streams of each device."""
        places = [(index, stream) for index in range(device.DEVICES) for stream in range(device.STREAMS)]
        return [ResourceInfo(stream, index, f"stream {stream}") for index, stream in places]


def _activity(record: device.Record) -> GenericTraceActivity:
    return GenericTraceActivity(
        _TYPES[record.kind],
        record.name,
        record.start,
        record.end,
        id=record.number,
        device=record.device,
        resource=record.stream,
        thread_id=record.thread_id,
        linked=record.op_id,
        linked_user=record.user_id,
        metadata={"bytes": record.n_bytes} if record.kind == "copy" else {},
    )
