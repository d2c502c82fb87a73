"""An op that launches a kernel of the pretend device, under torch.profiler.

The op runs inside a session of the simulated device `openreg`; `enable` takes the toy in as well. A plugin whose
`Capabilities.torch_device` names the device of the session joins without it.
"""

import torch
from torch.profiler import ProfilerActivity, profile
from toy import launch

import devprof
import devprof.torch


@torch.library.custom_op("toy::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    launch("double_kernel", duration_ns=50_000)
    return x * 2


devprof.torch.enable("toy")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    double(torch.ones(4))
    double(torch.ones(4))

print(prof.key_averages().table(sort_by="self_privateuse1_time_total", row_limit=5))
print(devprof.report_of(prof))
