"""A simulated device named `openreg`, its runtime, and its profiler plugin.

Job: be the reference plugin of devprof and the ground truth for its tests; a device that any machine has.
In: calls of a program (`openreg_sim.runtime`), or of torch (`openreg_sim.device`).
Out: a modelled timeline, its activity records (`openreg_sim.activity`), and the right answer beside them.
Never: imports torch from the runtime, the activity API or the plugin; those work on a machine without torch.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
