"""A program on the pretend SDK, whose calls belong to ranges although the SDK knows of none. It needs no torch."""

import threading

import vendor_sdk

import devprof

queues = [vendor_sdk.Queue(0), vendor_sdk.Queue(1)]


def copies() -> None:
    with devprof.record_function("load"):
        queues[1].submit("copy", 20)
        queues[1].submit("copy", 20)


with devprof.profile(activities=["cpu", "wrapper"], host="python") as prof:
    loader = threading.Thread(target=copies)
    loader.start()
    with devprof.record_function("forward"):
        queues[0].submit("gemm", 300)
        queues[0].submit("relu", 30)
    loader.join()

trace = prof.trace
owners = {int(trace.id[event]): trace.name_of(event) for event in trace.of_type(devprof.ActivityType.USER_ANNOTATION)}
for event in trace.of_type(devprof.ActivityType.CONCURRENT_KERNEL):
    print(f"{trace.name_of(event)} for {owners[int(trace.linked[event])]}, on {trace.rows[trace.row[event]].name}")
print(prof.report)
