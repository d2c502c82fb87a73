"""`ActivityLogger`: where a session puts its records.

Source: libkineto/include/output_base.h (ActivityLogger), cut to what a plugin may call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from devprof.model import ActivityBatch, DeviceInfo, GenericTraceActivity, ResourceInfo

__all__ = ["ActivityLogger", "GetLinkedActivity"]

GetLinkedActivity = Callable[[int], bool]
"""Says whether the host recorded an op under this op id in this session (Kineto returns the activity's address here)."""


class ActivityLogger(Protocol):
    """Receiver of records. Given to `process_trace` and `flush_trace`; valid only during that call, on that thread."""

    def handle_activity(self, activity: GenericTraceActivity) -> None:
        """Take one record. Convenient; a buffer at a time is a hundred times cheaper.

        Records that come one by one are on the session's clock: ticks if `clock_domain()` returns one, else Unix ns. A session
        with a clock of its own hands host calls, stamped by the host, over as a batch on ``unix_ns``:
        ``logger.handle_activities(ActivityBatch.from_activities(host_calls))``, and device work as a batch with ``clock=NAME``.

        Thread: that of the hook that got the logger. Called: by the plugin, any number of times. Never: use it from
        another thread. If it raises: `PluginContractError`, for a wrong argument or after that hook ended; it lands in
        the plugin's hook: let it pass. A record that no column can hold does not raise: it is rejected and counted.
        """

    def handle_activities(self, batch: ActivityBatch) -> None:
        """Take a batch of records, on ``unix_ns`` or on the session's clock.

        Thread: that of the hook that got the logger. Called: by the plugin, once per buffer. Never: change the batch
        afterwards. If it raises: `PluginContractError`, for a wrong argument or after that hook ended; it lands in the
        plugin's hook: let it pass. Another clock's batch is a wrong argument; a record that no trace can hold is rejected
        and counted.
        """

    def handle_device_info(self, info: DeviceInfo) -> None:
        """Name a device's row; the same as returning it from `get_device_infos`.

        Thread: that of the hook that got the logger. Called: by the plugin, once per device. Never: use it from another
        thread. If it raises: `PluginContractError`, for a wrong argument or after that hook ended; it lands in the
        plugin's hook: let it pass.
        """

    def handle_resource_info(self, info: ResourceInfo) -> None:
        """Name a resource's row; the same as returning it from `get_resource_infos`.

        Thread: that of the hook that got the logger. Called: by the plugin, once per resource. Never: use it from another
        thread. If it raises: `PluginContractError`, for a wrong argument or after that hook ended; it lands in the
        plugin's hook: let it pass.
        """

    def handle_dropped(self, count: int | None, reason: str) -> None:
        """Say that records were lost before they reached devprof.

        Thread: that of the hook that got the logger. Called: by the plugin, once per reason; counts add up. Never: put
        what never repeats, such as an address, into a reason. If it raises: `PluginContractError`, for a wrong argument
        or after that hook ended; it lands in the plugin's hook: let it pass. A negative count is a wrong argument.

        Args:
            count: how many, or None where the vendor cannot say; unknown is kept apart from zero.
            reason: short, stable words such as ``"activity buffer full"``.
        """
