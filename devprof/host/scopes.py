"""`RecordScope`: what kind of thing a range is.

Source: at::RecordScope in torch's ATen/record_function.h; the names and numbers are torch's.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["RecordScope"]


class RecordScope(IntEnum):
    """Kind of a range; callbacks choose the scopes that they want to see."""

    FUNCTION = 0
    """An op of a framework."""
    BACKWARD_FUNCTION = 1
    """A node of a backward pass."""
    TORCHSCRIPT_FUNCTION = 2
    """A function of a script interpreter."""
    KERNEL_FUNCTION_DTYPE = 3
    """The part of an op that is selected by dtype."""
    CUSTOM_CLASS = 4
    """A method of a class that is bound into a framework."""
    BUILD_FEATURE = 5
    """A feature that is switched on when the framework is built."""
    LITE_INTERPRETER = 6
    """A call by a small interpreter."""
    USER_SCOPE = 7
    """A range that the user named: `record_function`."""
    STATIC_RUNTIME_OP = 8
    """An op of a static runtime."""
    STATIC_RUNTIME_MODEL = 9
    """A whole model in a static runtime."""
