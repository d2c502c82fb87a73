"""Profile a program that uses the device: `python demo.py`."""

import devprof

from my_npu import device

with devprof.profile(activities=["cpu", "my-npu"], host="python") as prof:
    with devprof.record_function("load"):
        device.copy(1_000_000, stream=1)
    with devprof.record_function("compute"):
        device.launch("gemm", ticks=20_000)
        device.launch("relu", ticks=2_000)

for event in prof.events():
    if event.kernels:
        print(event.name, [f"{kernel.name} {kernel.duration:.1f} us" for kernel in event.kernels])
print(prof.report)
# open it in https://ui.perfetto.dev, or with `devprof view`
prof.export_chrome_trace("my-npu.trace.json")
