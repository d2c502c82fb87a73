"""Where torch is installed, the kit's checks run under torch too, if its device has the name that the plugin serves."""

from contextlib import suppress

from my_npu.plugin import TORCH_DEVICE

with suppress(ImportError, RuntimeError):  # no torch; or another backend has its name already, and the kit says so
    from torch.utils.backend_registration import rename_privateuse1_backend

    rename_privateuse1_backend(TORCH_DEVICE)
