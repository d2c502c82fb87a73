"""Entry point in torch's group ``torch.backends``: installs the wrap around torch's profiler, and nothing else.

torch calls it near the end of ``import torch`` and turns any exception into a failed import; so nothing leaves this module.
"""

from __future__ import annotations

import os


def arm() -> None:
    """Wrap torch's profiler entry points. Never raises, never builds, never looks for plugins.

    With ``DEVPROF_DISABLE=1`` nothing of devprof is loaded behind this module. With ``DEVPROF_ON_DEMAND`` the process listens
    for ``devprof attach``.
    """
    if os.environ.get("DEVPROF_DISABLE") == "1":
        return
    try:
        from devprof.torch.interpose import install

        install()
        if os.environ.get("KINETO_USE_DAEMON"):
            from devprof.torch.kineto_requests import serve_when_torch_is_there

            serve_when_torch_is_there()
        if os.environ.get("DEVPROF_ON_DEMAND"):
            from importlib import import_module

            import_module("devprof.trigger").start_if_asked()  # by name: that room stands above this one
    except Exception:  # whatever it is, `import torch` matters more; `devprof doctor` shows it
        import logging

        logging.getLogger("devprof").warning("devprof could not wrap torch.profiler", exc_info=True)
