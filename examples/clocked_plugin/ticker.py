"""A pretend device with a clock of its own, two streams and a small record buffer, and its plugin."""

import itertools
import threading
import time

from devprof.contract import Capabilities, ClockDomain, hookimpl
from devprof.correlation import current
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo

CLOCK = "ticker"
NS_PER_TICK = 10  # the device's clock counts at 100 MHz
BOOT_NS = time.monotonic_ns()
CAPACITY = 4  # records of device work that the device can keep
KERNELS, COPIES = 0, 1  # its streams

NUMBERS = itertools.count(1)
HOST: list[GenericTraceActivity] = []
DEVICE: list[GenericTraceActivity] = []
LOST: list[str] = []


def now_ticks() -> int:
    """The device's clock: ticks since the device was switched on."""
    return (time.monotonic_ns() - BOOT_NS) // NS_PER_TICK


def launch(kind: ActivityType, name: str, stream: int, ticks: int, **metadata: int) -> None:
    """Start work on a stream: the call in the host's time, and the work that it causes in the device's."""
    call_ns, ids = time.time_ns(), current()
    both = {
        "id": next(NUMBERS),  # the device's own number, on the call and on the work
        "linked": ids.op_id,  # devprof's number of the op that launches
        "linked_user": ids.user_id,
        "thread_id": threading.get_native_id(),
    }
    HOST.append(GenericTraceActivity(ActivityType.PRIVATEUSE1_RUNTIME, "tickLaunch", call_ns, call_ns + 2_000, **both))
    if len(DEVICE) == CAPACITY:
        LOST.append(name)
        return
    start = now_ticks()
    DEVICE.append(GenericTraceActivity(kind, name, start, start + ticks, resource=stream, metadata=metadata, **both))


class Session:
    def start(self):
        for records in (HOST, DEVICE, LOST):
            records.clear()

    def stop(self):
        while DEVICE and now_ticks() < max(record.end_ns for record in DEVICE):
            time.sleep(0.0001)

    def clock_domain(self):
        return ClockDomain(CLOCK, ticks_per_second=1e9 / NS_PER_TICK)

    def sample_clock(self):
        return now_ticks()

    def process_trace(self, logger, get_linked_activity, start_ns, end_ns):
        logger.handle_activities(ActivityBatch.from_activities(HOST))  # in Unix ns
        logger.handle_activities(ActivityBatch.from_activities(DEVICE, clock=CLOCK))  # in ticks
        logger.handle_dropped(len(LOST), "record buffer full")

    def get_device_infos(self):
        return [DeviceInfo(0, "ticker 0", properties={"clock MHz": 1_000 // NS_PER_TICK})]

    def get_resource_infos(self):
        return [ResourceInfo(KERNELS, 0, "kernels"), ResourceInfo(COPIES, 0, "copies")]


class Profiler:
    def name(self):
        return "ticker"

    def capabilities(self):
        return Capabilities(description="a pretend device with a clock of its own")

    def available_activities(self):
        return {ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY}

    def configure(self, activity_types, config, *, ts_ms=None, duration_ms=None):
        return Session()


@hookimpl
def devprof_activity_profilers():
    return [Profiler()]
