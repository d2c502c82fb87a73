"""An op that copies and computes on the pretend device, five records in all of which the device can keep four."""

import torch
from ticker import COPIES, KERNELS, launch
from torch.profiler import ProfilerActivity, profile

import devprof
import devprof.torch
from devprof.model import ActivityType


@torch.library.custom_op("ticker::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    launch(ActivityType.GPU_MEMCPY, "copy to device", COPIES, ticks=1_000, bytes=x.nbytes)
    launch(ActivityType.CONCURRENT_KERNEL, "triple_kernel", KERNELS, ticks=5_000)
    return x * 3


devprof.torch.enable("ticker")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    triple(torch.ones(4))
    triple(torch.ones(4))
    launch(ActivityType.CONCURRENT_KERNEL, "one_too_many", KERNELS, ticks=5_000)

prof.export_chrome_trace("ticker.trace.json")
print(prof.key_averages().table(sort_by="self_privateuse1_time_total", row_limit=6))
print(devprof.report_of(prof))
