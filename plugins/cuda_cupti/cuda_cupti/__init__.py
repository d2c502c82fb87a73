"""devprof's plugin for NVIDIA GPUs: kernels, copies and API calls through CUPTI, without torch.

Job: find libcupti and say why it cannot be used; hand it buffers, decode them, and give devprof the records in Kineto's words.
In: the driver's and CUPTI's C functions, by ctypes; op and user ids from devprof.
Out: `cuda_cupti.plugin`, behind the entry point ``cuda``; `cuda_cupti.workload`, for ``devprof conform cuda``.
Never: loads anything of NVIDIA's before a profile is prepared, keeps a subscription, or takes CUPTI from another profiler.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
