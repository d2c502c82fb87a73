"""`SetAside`: when, where and for how long a plugin was taken out of what it had a part in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

__all__ = ["HOOK_RETURNS", "PROCESS_ENDS", "SESSION_ENDS", "SetAside"]

SESSION_ENDS = "the session ends"
HOOK_RETURNS = "the hook comes back"
PROCESS_ENDS = "the process ends"

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SetAside:
    """The verdict on a plugin that misbehaved.

    Attributes:
        hook: what it misbehaved in, such as ``"session.stop"``.
        at_ns: when devprof noticed, Unix ns.
        until: for how long it is left out; `HOOK_RETURNS` and `PROCESS_ENDS` are a quarantine.
    """

    hook: str
    at_ns: int
    until: str = SESSION_ENDS

    @property
    def quarantined(self) -> bool:
        """True where the plugin is left out of later sessions too."""
        return self.until != SESSION_ENDS

    @property
    def mark(self) -> str:
        """Words for the plugin's rows in a trace."""
        return f"{'quarantined' if self.quarantined else 'set aside'} in {self.hook}: records may be missing"

    def as_dict(self) -> dict[str, object]:
        """Return the verdict as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        word = "quarantined" if self.quarantined else "set aside"
        at = datetime.fromtimestamp(self.at_ns // _NS, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"{word} at {at}.{self.at_ns % _NS // 1_000_000:03d} UTC in {self.hook}, until {self.until}"
