"""Every exception and warning of devprof, by whose move it is.

    DevprofError
    +-- UsageError              the caller: wrong argument, wrong order
    |   +-- SessionError        a session that may not start or stop here (also a RuntimeError)
    +-- PluginError             the plugin's author: names plugin and hook
    |   +-- PluginContractError   wrong type, missing method, wrong contract version
    |   +-- PluginTimeoutError    a hook did not come back within its budget
    +-- CaptureError            the device or the system
    |   +-- BuildError          a native library cannot be built or loaded here
    +-- TraceFileError          the data in a file

    DevprofWarning
    +-- PluginWarning           a plugin misbehaved and was set aside
    +-- LossWarning             records were lost, rejected or left unlinked

Facts are attributes, so that tools need not parse the message.
"""

from __future__ import annotations

__all__ = [
    "BuildError",
    "CaptureError",
    "DevprofError",
    "DevprofWarning",
    "LossWarning",
    "PluginContractError",
    "PluginError",
    "PluginTimeoutError",
    "PluginWarning",
    "SessionError",
    "TraceFileError",
    "UsageError",
]


class DevprofError(Exception):
    """Base of every exception that devprof raises on purpose."""


class UsageError(DevprofError):
    """The caller asked for something that cannot be done; the message says what to do instead."""


class SessionError(UsageError, RuntimeError):
    """A profiling session may not start or stop here: nested, concurrent, or on the wrong thread.

    Also a `RuntimeError`, which is what torch raises for its own session mistakes.
    """


class PluginError(DevprofError):
    """A plugin misbehaved.

    Attributes:
        plugin: name of the plugin, as registered.
        hook: the method or hook that misbehaved, such as ``"session.stop"``.
    """

    def __init__(self, plugin: str, hook: str, message: str) -> None:
        super().__init__(f"plugin {plugin!r}, {hook}: {message}")
        self.plugin = plugin
        self.hook = hook
        self.reason = message

    def __reduce__(self) -> tuple[type[PluginError], tuple[str, str, str]]:
        return type(self), (self.plugin, self.hook, self.reason)


class PluginContractError(PluginError):
    """A plugin does not fit the contract: expected and found are in the message."""


class PluginTimeoutError(PluginError):
    """A plugin's hook did not come back within its time budget; the plugin is quarantined."""


class CaptureError(DevprofError):
    """The device or the system could not deliver."""


class BuildError(CaptureError):
    """A native library cannot be built or loaded in this environment."""


class TraceFileError(DevprofError):
    """A trace file is damaged or is not what its name says."""


class DevprofWarning(UserWarning):
    """Base of every warning that devprof issues."""


class PluginWarning(DevprofWarning):
    """A plugin misbehaved and was set aside for the rest of the session."""


class LossWarning(DevprofWarning):
    """A session lost, rejected or could not link some of its records, or cannot vouch for their times."""
