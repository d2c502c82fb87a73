"""A pretend device and its plugin. `launch` stands for what your device's runtime does."""

import itertools
import threading
import time

from devprof.contract import Capabilities, hookimpl
from devprof.correlation import current
from devprof.model import ActivityType, GenericTraceActivity

RECORDS: list[GenericTraceActivity] = []
NUMBERS = itertools.count(1)


def launch(kernel: str, duration_ns: int) -> None:
    """Start a kernel: the call on the host, and the work that it causes 5 us later."""
    now, ids = time.time_ns(), current()
    both = {
        "id": next(NUMBERS),
        "linked": ids.op_id,
        "linked_user": ids.user_id,
        "thread_id": threading.get_native_id(),
    }
    start, end = now + 5_000, now + 5_000 + duration_ns
    RECORDS.append(GenericTraceActivity(ActivityType.PRIVATEUSE1_RUNTIME, "toyLaunch", now, now + 2_000, **both))
    RECORDS.append(GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, kernel, start, end, **both))


class Session:
    def start(self):
        RECORDS.clear()

    def stop(self):
        pass  # a real device waits here until its work is done

    def process_trace(self, logger, get_linked_activity, start_ns, end_ns):
        for record in RECORDS:
            logger.handle_activity(record)


class Profiler:
    def name(self):
        return "toy"

    def capabilities(self):
        return Capabilities(description="a pretend device")

    def available_activities(self):
        return {ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.CONCURRENT_KERNEL}

    def configure(self, activity_types, config, *, ts_ms=None, duration_ms=None):
        return Session()


@hookimpl
def devprof_activity_profilers():
    return [Profiler()]
