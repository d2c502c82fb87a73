"""An op of your own under an unchanged torch.profiler: `python demo_torch.py`."""

import devprof
import torch
from torch.profiler import ProfilerActivity, profile

from my_npu import device


@torch.library.custom_op("my_npu::layer", mutates_args=())
def layer(x: torch.Tensor) -> torch.Tensor:
    device.launch("gemm", ticks=4_800)
    device.launch("relu", ticks=480)
    return torch.relu(x @ x)


torch.utils.rename_privateuse1_backend("my_npu")  # what a torch backend does when it is imported

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    for _ in range(3):
        layer(torch.ones(64, 64))

for event in prof.events():
    if event.kernels:
        print(event.name, [f"{kernel.name} {kernel.duration:.1f} us" for kernel in event.kernels])
print(devprof.report_of(prof))
prof.export_chrome_trace("my-npu.torch.trace.json")
