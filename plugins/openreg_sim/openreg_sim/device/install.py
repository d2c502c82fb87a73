"""`install`: load the native library, make the device, and register `torch.openreg`. Once per process, for good."""

from __future__ import annotations

import atexit
import sys

import torch
from torch.utils.backend_registration import generate_methods_for_privateuse1_backend, rename_privateuse1_backend

from devprof.native import load
from openreg_sim.build_spec import openreg_build
from openreg_sim.device import installed
from openreg_sim.device.at_exit import leave
from openreg_sim.device.library import declare
from openreg_sim.device.link import RuntimeLink
from openreg_sim.runtime import runtime

__all__ = ["install"]

NAME = "openreg"


def install() -> None:
    """Make the device `openreg` known to torch. Cannot be undone: torch lets a backend be named once.

    Raises:
        devprof.errors.BuildError: the native library has not been built, or not for this torch.
        RuntimeError: torch or the library refuses.
    """
    driver = runtime()
    library = declare(load(openreg_build()))
    rename_privateuse1_backend(NAME)
    if library.orInit(driver.device_count) != 0:
        raise RuntimeError(f"the native device did not start: {library.orLastError().decode()}")
    link = RuntimeLink(library, driver)
    link.open()
    installed.set_link(link)
    _register()
    atexit.register(leave, link)


def _register() -> None:
    from openreg_sim.device import torch_module

    torch._register_device_module(NAME, torch_module)  # type: ignore[no-untyped-call]  # torch's own
    sys.modules[f"torch.{NAME}"] = torch_module
    generate_methods_for_privateuse1_backend(for_storage=True)
