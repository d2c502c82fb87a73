"""`Names`: what a package and its parts are called, from the one name that its author gave."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass

from devprof.errors import UsageError

__all__ = ["Names"]

_DISTRIBUTION = re.compile(r"[a-z0-9]|[a-z0-9][a-z0-9._-]*[a-z0-9]", re.IGNORECASE | re.ASCII)
_TAKEN = frozenset({"devprof", "numpy", "pluggy", "pytest", "rich", "setuptools", "tests", "torch", "typer"})
_LONGEST = 40
"""Letters in a plugin's name: users write it, and tables have to hold it."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the parts of a package are called.

    Attributes:
        distribution: what pip installs, and the plugin's name: normalized as PEP 503 says.
        package: what Python imports.
        torch_device: what torch calls the device.
    """

    distribution: str
    package: str
    torch_device: str

    @classmethod
    def of(cls, name: str, torch_device: str | None = None) -> Names:
        """Derive the names.

        Args:
            name: what the author typed, such as ``"my-npu"``.
            torch_device: name of a torch backend; None: that of the package.

        Raises:
            UsageError: pip, Python or torch could not use one of them; the message says which and why.
        """
        if not _DISTRIBUTION.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be a package's name: expected letters, digits, '-', '_' and '.', with a letter or digit at "
                "both ends, such as 'my-npu'"
            )
        distribution = re.sub(r"[-_.]+", "-", name).lower()
        package = distribution.replace("-", "_")
        if (reason := _unusable(package)) is not None or len(distribution) > _LONGEST:
            reason = reason or f"it has {len(distribution)} letters, {_LONGEST} are the most"
            raise UsageError(f"{name!r} cannot be a plugin's name: {reason}; choose another one")
        return cls(distribution, package, _checked_device(package if torch_device is None else torch_device))


def _unusable(package: str) -> str | None:
    """Say why Python could not import a package of that name, or return None."""
    if not package.isidentifier():
        return f"Python could not import {package!r}, which begins with a digit"
    if keyword.iskeyword(package):
        return f"{package!r} is a word of Python's own"
    if package in sys.stdlib_module_names or package in _TAKEN:
        return f"it would hide the module {package!r}"
    return None


def _checked_device(name: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.ASCII) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} cannot be a torch device's name: expected small letters, digits and '_', such as 'npu': what "
            "torch.utils.rename_privateuse1_backend is told, and torch.<name> has to be an attribute"
        )
    return name
