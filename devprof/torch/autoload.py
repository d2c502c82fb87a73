"""Entry point in torch's group ``torch.backends``: installs the wrap around torch's profiler, and nothing else.

torch calls it near the end of ``import torch`` and turns any exception into a failed import; so nothing leaves this module.
"""

from __future__ import annotations


def arm() -> None:
    """Wrap torch's profiler entry points. Never raises, never builds, never looks for plugins."""
    try:
        from devprof.torch.interpose import install

        install()
    except Exception:  # whatever it is, `import torch` matters more; `devprof doctor` shows it
        import logging

        logging.getLogger("devprof").warning("devprof could not wrap torch.profiler", exc_info=True)
