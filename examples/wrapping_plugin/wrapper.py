"""The plugin of `vendor_sdk`, whose programs call the SDK themselves: while it records, it stands around `Queue.submit`."""

import functools
import threading
import time
from typing import NamedTuple

import vendor_sdk

from devprof.contract import Capabilities, hookimpl
from devprof.correlation import current
from devprof.model import ActivityType, GenericTraceActivity, ResourceInfo

CALL, KERNEL = ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.CONCURRENT_KERNEL


class Call(NamedTuple):
    queue: int
    ticket: int
    start_ns: int
    end_ns: int
    thread_id: int
    op_id: int
    user_id: int


class Session:
    def __init__(self):
        self.calls: list[Call] = []
        self.jobs: list[vendor_sdk.Job] = []
        self.submit = None

    def start(self):
        self.submit = vendor_sdk.Queue.submit
        vendor_sdk.Queue.submit = self.around(self.submit)
        vendor_sdk.trace_begin()

    def around(self, submit):
        @functools.wraps(submit)
        def noting(queue, *args, **named):
            ids, start_ns = current(), time.time_ns()
            ticket = submit(queue, *args, **named)  # whatever it raises is the program's
            # programs submit from many threads; appending to a list needs no lock
            self.calls.append(Call(queue.number, ticket, start_ns, time.time_ns(), threading.get_native_id(), *ids))
            return ticket

        return noting

    def stop(self):
        if self.submit is None:  # never started, or stopped already
            return
        vendor_sdk.Queue.submit, self.submit = self.submit, None
        vendor_sdk.synchronize()
        self.jobs = vendor_sdk.trace_end()

    def process_trace(self, logger, get_linked_activity, start_ns, end_ns):
        # tickets are counted per queue, launch numbers per session: the number of the call stands for the pair
        numbers = {}
        for number, call in enumerate(self.calls, 1):
            numbers[call.queue, call.ticket] = number, call
            ids = {"id": number, "linked": call.op_id, "linked_user": call.user_id, "thread_id": call.thread_id}
            logger.handle_activity(GenericTraceActivity(CALL, "submit", call.start_ns, call.end_ns, **ids))
        for job in self.jobs:
            number, call = numbers.get((job.queue, job.ticket), (0, None))
            ids = {"id": number, "linked": call.op_id, "linked_user": call.user_id} if call else {}
            work = GenericTraceActivity(KERNEL, job.kernel, job.start_ns, job.end_ns, resource=job.queue, **ids)
            logger.handle_activity(work)

    def get_resource_infos(self):
        return [ResourceInfo(number, 0, f"queue {number}") for number in {job.queue for job in self.jobs}]


class Profiler:
    def name(self):
        return "wrapper"

    def capabilities(self):
        return Capabilities(description="a pretend SDK that knows of no profiler")

    def available_activities(self):
        return {CALL, KERNEL}

    def configure(self, activity_types, config, *, ts_ms=None, duration_ms=None):
        return Session()


@hookimpl
def devprof_activity_profilers():
    return [Profiler()]
