"""Profile a program that uses a device without torch: here the simulated one, through its own runtime."""

import devprof
from openreg_sim.runtime import runtime

device = runtime()

with devprof.profile(activities=["cpu", "openreg"]) as prof:
    with devprof.record_function("forward"):
        device.launch("matmul_kernel", flops=2e9, bytes=12e6)
        device.launch("relu_kernel", flops=1e6, bytes=8e6)
    with devprof.record_function("backward"):
        device.launch("matmul_grad_kernel", flops=4e9, bytes=24e6)
    device.device_synchronize()

print(prof.key_averages().table(sort_by="self_device_time_total", max_name_column_width=25))
print(prof.report)
prof.export_chrome_trace("without_torch.json.gz")
