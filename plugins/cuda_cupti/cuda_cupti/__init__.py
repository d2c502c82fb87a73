"""Placeholder for devprof's CUDA plugin, which will record NVIDIA GPUs through CUPTI.

Job: hold the name of the distribution and of the import. There is nothing else here yet.
In: nothing.
Out: `__version__`.
Never: registers an entry point while it cannot record.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
